"""What all figures of a report have in common: colours, names, times, and the layout they begin with.

Plotly renders a little HTML in names, labels and hover texts: bold, links. Names of topics and groups come from others,
so each is escaped before it gets there, and none is put into a template, in which `%{…}` has a meaning.

Figures leave out the colours of text, grid and background: the page sets them, light or dark, when it is shown.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from tailrace.pipeline.analysis.report import TOPICS_DRAWN_MAX

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# One for each topic that has a line of its own; of a middle lightness, to be read on white and on black.
COLOURS: Final = (
    "#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#a855f7", "#06b6d4", "#ec4899", "#84cc16", "#8b5e3c", "#6366f1",
    "#f97316", "#14b8a6",
)  # fmt: skip
COLOUR_OF_OTHERS: Final = "#94a3b8"
NAME_SHOWN_MAX: Final = 36  # characters, in a legend
ROW_SHOWN_MAX: Final = 130  # characters of all names in a legend that is one row; a longer one is a column
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
LINE_SAMPLE: Final = 6  # characters that the sample of a line takes, beside each name

assert len(COLOURS) == TOPICS_DRAWN_MAX


def colour_of(place: int) -> str:
    """Of the line at this place: those beyond the topics that are drawn apart stand for all others."""
    return COLOURS[place] if place < len(COLOURS) else COLOUR_OF_OTHERS


def faint(colour: str) -> str:
    """The same, to fill an area that others are seen through."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.13)"


def shown(name: str) -> str:
    """A name for a legend or an axis: escaped, and shortened in its middle when it is long."""
    if len(name) > NAME_SHOWN_MAX:
        half = NAME_SHOWN_MAX // 2
        name = f"{name[:half]}…{name[-half:]}"
    return escaped(name)


def escaped(text: str) -> str:
    """As plotly shows it unchanged. It decodes no quotation marks, and needs none to be escaped."""
    return escape(text, quote=False)


def time_text(ms: int) -> str:
    """A time in UTC as plotly takes it, to the second or to the millisecond."""
    moment = datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")


def is_row(names: Sequence[str]) -> bool:
    """Whether a legend of these names has room in one row."""
    return sum(len(shown(name)) + LINE_SAMPLE for name in names) <= ROW_SHOWN_MAX


def legend(names: Sequence[str], top: float) -> dict[str, Any]:
    """A legend of these names: a row above a plot that ends at `top`, or a column to its right."""
    if is_row(names):
        return {"orientation": "h", "yanchor": "bottom", "y": top, "x": 0}
    return {"orientation": "v", "yanchor": "top", "y": top, "x": 1.01, "font": {"size": 11}, "tracegroupgap": 0}


def laid_out(figure: "Figure", height: int, **more: Any) -> "Figure":
    """The figure with what all of them share."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 76, "r": 24, "t": 84, "b": 60},
        font={"family": FONT, "size": 13},
        hoverlabel={"font": {"family": FONT, "size": 13}, "namelength": -1},
        modebar={"bgcolor": "rgba(0,0,0,0)"},
        **more,
    )
    figure.update_xaxes(zeroline=False, automargin=True, title_standoff=10)
    figure.update_yaxes(zeroline=False, automargin=True, title_standoff=10)
    return figure


def extra(lines: Sequence[str]) -> str:
    """A hover template: these lines, and the whole name of the line, however long it is, beside them."""
    return "<br>".join(lines) + "<extra>%{meta}</extra>"
