"""The figure with everything over time: panels below each other, sharing one time axis that is true to scale.

Steps without records are not left out: in a gap between two steps the rate is zero, and delays have no value. Each
value is drawn over the full width of its step, so a single second among quiet minutes is one second wide. All panels
zoom together, and a click on a topic in the legend hides the topic in all panels.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING, Any, Final

from tailrace.model.frozen import frozen
from tailrace.pipeline.analysis.figure_style import (
    apply_layout,
    colour_of,
    display_name,
    escaped,
    hover_template,
    is_row,
    legend,
    time_text,
    translucent,
)
from tailrace.pipeline.analysis.report import SHARES, Delays, LagLine, Report, Step, TopicLine
from tailrace.pipeline.analysis.steps import duration_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

PANEL_PX: Final = 250
BETWEEN_PX: Final = 108
AROUND_PX: Final = 160  # above and below all panels
DECADES_OF_DIGITS_MAX: Final = 4  # on a logarithmic axis; with more decades, only powers of ten are labelled
LEGEND_PX: Final = 26
MARK_PX: Final = 6
FILLED_LINES_MAX: Final = 4  # with more lines, filled areas would cover each other
DASHES: Final = ("solid", "dash", "dot")  # in the order of `SHARES`
MS_A_SECOND: Final = 1000
# Units of delays: name, length in ms, and the delay in ms below which the unit is used.
DELAY_UNITS: Final = (
    ("ms", 1, 10_000),
    ("s", 1_000, 600_000),
    ("min", 60_000, 36_000_000),
    ("h", 3_600_000, 864_000_000),
    ("d", 86_400_000, inf),
)
FACTOR_LOG_MIN: Final = 10.0  # smaller ratios of largest to smallest value get a linear axis


@frozen
class Point:
    at_ms: int  # since 1970
    value: float | None  # None: a gap in the line
    more: str = ""  # extra hover text
    is_alone: bool = False  # no neighbour to connect to: needs a marker to be visible


@frozen
class Panel:
    title: str
    unit: str
    traces: tuple["Scatter", ...]
    legend: str = ""  # the legend of this panel; empty: no legend
    names: tuple[str, ...] = ()  # in that legend
    ticks: tuple[float, ...] = ()  # of a logarithmic axis; empty: the axis is linear


def over_time(report: Report) -> "Figure":
    """One figure with a panel for each quantity that has data."""
    from plotly.subplots import make_subplots

    panels = [panel for panel in _panels(report) if panel.traces]
    height = AROUND_PX + len(panels) * PANEL_PX + (len(panels) - 1) * BETWEEN_PX
    spacing = BETWEEN_PX / (height - AROUND_PX) if len(panels) > 1 else 0.0
    figure = make_subplots(
        rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=spacing, subplot_titles=[p.title for p in panels]
    )
    apply_layout(figure, height, hovermode="x unified")
    for row, panel in enumerate(panels, 1):
        _add(figure, panel, row)
    figure.update_xaxes(type="date", showticklabels=True, hoverformat="%Y-%m-%d %H:%M:%S")
    figure.update_xaxes(title_text=f"time (UTC), in steps of {duration_text(report.step_s)}", row=len(panels), col=1)
    return figure


def _add(figure: "Figure", panel: Panel, row: int) -> None:
    figure.add_traces(list(panel.traces), rows=row, cols=1)
    figure.update_yaxes(title_text=panel.unit, row=row, col=1, **_kind_of_axis(panel))
    above_px = LEGEND_PX if panel.legend and is_row(panel.names) else 0
    figure.layout.annotations[row - 1].update(x=0, xanchor="left", font={"size": 15}, yshift=above_px + 4)
    if panel.legend:
        (axis,) = figure.select_yaxes(row=row, col=1)
        figure.update_layout({panel.legend: legend(panel.names, axis.domain[1])})


def _kind_of_axis(panel: Panel) -> dict[str, Any]:
    if not panel.ticks:
        return {"type": "linear", "rangemode": "tozero"}
    return {"type": "log", "tickvals": panel.ticks, "tickformat": ",~g"}


def log_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """The labels of a logarithmic axis: 1, 2, 5, 10, 20, …; empty if a linear axis shows the values better."""
    if not values or min(values) <= 0 or max(values) < FACTOR_LOG_MIN * min(values):
        return ()
    lowest, highest = floor(log10(min(values))), ceil(log10(max(values)))
    digits = (1, 2, 5) if highest - lowest <= DECADES_OF_DIGITS_MAX else (1,)
    return tuple(digit * 10.0**power for power in range(lowest, highest + 1) for digit in digits)


def _panels(report: Report) -> Iterator[Panel]:
    step_ms, step = report.step_s * MS_A_SECOND, duration_text(report.step_s)
    told = f"(%{{customdata}} in {step})"  # the count in the step, shown beside the rate per second
    yield Panel(
        title="Messages per second", unit="messages/s", legend="legend",
        names=tuple(line.name for line in report.lines),
        traces=_rates(report, lambda step: step.messages, f"%{{y:,.4~g}} messages/s {told}", showlegend=True),
    )  # fmt: skip
    yield Panel(
        title="Bytes per second, of the messages' values", unit="bytes/s",
        traces=_rates(report, lambda step: step.bytes, f"%{{y:,.3~s}}B/s {told}", showlegend=False),
    )  # fmt: skip
    yield _delay_panel(
        report.lines, step_ms, "Latency: from the header sent-at to the record's timestamp", lambda step: step.latency
    )
    yield _delay_panel(
        report.lines, step_ms, "Archive delay: from the record's timestamp to the commit that archived it",
        lambda step: step.archive_delay,
    )  # fmt: skip
    last_ms = max((line.steps[-1].at_ms + step_ms for line in report.lines if line.steps), default=0)
    yield Panel(
        title="Consumer lag: offsets between what a group has committed and the end of the topic", unit="offsets",
        legend="legend2", names=tuple(map(_lag_name, report.lags)),
        traces=tuple(_lag(line, place, last_ms) for place, line in enumerate(report.lags)),
    )  # fmt: skip


def _rates(report: Report, count: Callable[[Step], int], hover: str, *, showlegend: bool) -> tuple["Scatter", ...]:
    """A line for each topic: the rate per second in each step."""
    is_filled = len(report.lines) <= FILLED_LINES_MAX
    return tuple(
        _trace(
            _rate_points(line.steps, report.step_s, count), line.name, hover, colour_of(place), legendgroup=line.name,
            showlegend=showlegend, fillcolor=translucent(colour_of(place)), fill="tozeroy" if is_filled else "none",
        )
        for place, line in enumerate(report.lines)
    )  # fmt: skip


def _rate_points(steps: Sequence[Step], step_s: int, count: Callable[[Step], int]) -> Iterator[Point]:
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        end_ms = step.at_ms + step_s * MS_A_SECOND
        yield Point(at_ms=step.at_ms, value=count(step) / step_s, more=f"{count(step):,}")
        if after is None or after.at_ms > end_ms:
            yield Point(at_ms=end_ms, value=0.0, more="0")


def _delay_panel(lines: Sequence[TopicLine], step_ms: int, title: str, delays: Callable[[Step], Delays]) -> Panel:
    """Percentiles of a delay, each with its own dash style; on a logarithmic axis if values differ tenfold or more."""
    found = [[(step.at_ms, delay) for step in line.steps if (delay := delays(step))] for line in lines]
    every = [one for those in found for _, delay in those for one in delay]
    unit, divisor = next((name, ms) for name, ms, below_ms in DELAY_UNITS if max(every, default=0) < below_ms)
    traces = tuple(
        _trace(
            _delay_points([(at_ms, delay[number] / divisor) for at_ms, delay in those], step_ms),
            f"{line.name} {_percentile(share)}", f"%{{y:,.4~g}} {unit}", colour_of(place), dash=DASHES[number],
            legendgroup=line.name, showlegend=False,
        )
        for place, (line, those) in enumerate(zip(lines, found, strict=True))
        for number, share in enumerate(SHARES) if those
    )  # fmt: skip
    kinds = ", ".join(f"{_percentile(share)} {dash}" for share, dash in zip(SHARES, DASHES, strict=True))
    ticks = log_ticks([one / divisor for one in every])
    return Panel(title=f"{title} ({kinds})", unit=unit, traces=traces, ticks=ticks)


def _percentile(share: float) -> str:
    return f"p{100 * share:g}"


def _delay_points(found: Sequence[tuple[int, float]], step_ms: int) -> Iterator[Point]:
    times = {at_ms for at_ms, _ in found}
    for at_ms, delay in found:
        follows, goes_on = at_ms - step_ms in times, at_ms + step_ms in times
        yield Point(at_ms=at_ms, value=delay, is_alone=not follows and not goes_on)
        if not goes_on:
            yield Point(at_ms=at_ms + step_ms, value=delay)
            yield Point(at_ms=at_ms + step_ms, value=None)


def _lag(line: LagLine, place: int, last_ms: int) -> "Scatter":
    """A lag line. The lag stays constant until the next commit or record, up to the end of the history."""
    points = [Point(at_ms=at_ms, value=lag) for at_ms, lag in line.points]
    if points[-1].at_ms < last_ms:
        points.append(Point(at_ms=last_ms, value=points[-1].value))
    hover = "%{y:,} offsets behind"
    return _trace(iter(points), _lag_name(line), hover, colour_of(place), legend="legend2", showlegend=True)


def _lag_name(line: LagLine) -> str:
    return f"{line.group} on {line.topic}"


def _trace(
    points: Iterator[Point], name: str, hover: str, colour: str, *, dash: str = "solid", **more: Any
) -> "Scatter":
    from plotly.graph_objects import Scatter

    taken = list(points)
    marks = [MARK_PX if point.is_alone else 0 for point in taken]
    return Scatter(
        x=[time_text(point.at_ms) for point in taken], y=[point.value for point in taken],
        customdata=[point.more for point in taken], name=display_name(name), meta=escaped(name),
        hovertemplate=hover_template([hover]),
        mode="lines+markers" if any(marks) else "lines", marker={"size": marks if any(marks) else 0, "color": colour},
        connectgaps=False, line={"color": colour, "width": 1.6, "dash": dash, "shape": "hv"}, **more,
    )  # fmt: skip
