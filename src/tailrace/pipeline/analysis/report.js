"use strict";
// Draws the figures that the page holds as JSON, in the colours of the page, and again when light turns to dark.
(() => {
  // Only these buttons: some of plotly's others would send the data of a chart to a server.
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
    plotlyServerURL: "",
    toImageButtonOptions: { format: "svg" },
  };

  // What the style sheet says now, as changes to a layout.
  function colours(layout) {
    const style = getComputedStyle(document.documentElement);
    const [text, quiet, card, line] = ["--text", "--quiet", "--card", "--line"].map((name) =>
      style.getPropertyValue(name).trim(),
    );
    const changes = {
      "font.color": text,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      "modebar.color": line,
      "modebar.activecolor": quiet,
      "hoverlabel.bgcolor": card,
      "hoverlabel.bordercolor": line,
      "hoverlabel.font.color": text,
    };
    for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
      changes[`${axis}.gridcolor`] = line;
      changes[`${axis}.linecolor`] = line;
    }
    return changes;
  }

  for (const holder of document.querySelectorAll("script[data-figure]")) {
    const place = document.getElementById(holder.dataset.figure);
    const { data, layout } = JSON.parse(holder.textContent);
    Plotly.newPlot(place, data, layout, config).then(() => Plotly.relayout(place, colours(layout)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Plotly.relayout(place, colours(layout)));
  }
})();
