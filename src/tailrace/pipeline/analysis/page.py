"""The report as one self-contained HTML file: it includes the plotting library and loads nothing.

A Content-Security-Policy in the page's head makes the browser block all network requests, so opening a report is not
visible to anyone and works the same offline. Each figure is JSON in its own element, which `report.js` reads. All text
is escaped, since names of topics and groups, keys and headers are untrusted input.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from tailrace.pipeline.analysis.archive_times import RANGES_MAX
from tailrace.pipeline.analysis.distributions import shares, sizes
from tailrace.pipeline.analysis.over_time import over_time
from tailrace.pipeline.analysis.report import LAG_LINES_MAX, Report, TopicTotal, span_ms
from tailrace.pipeline.analysis.steps import duration_text
from tailrace.pipeline.analysis.tables import ResultTable

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
ROWS_OPEN_MAX: Final = 25  # longer tables are collapsed at first
NAMES_TOLD_MAX: Final = 5
UNIT_STEP: Final = 1000
BYTE_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def page(report: Report) -> str:
    """The complete HTML of the report."""
    from plotly.offline import get_plotlyjs

    title = f"Tailrace report: {escape(report.history)}"
    body = [_head_line(report), *_plots(report), *_tables(report.tables)]
    return "\n".join(
        (
            "<!doctype html>",
            "<html lang='en'><head><meta charset='utf-8'>",
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='color-scheme' content='light dark'>",
            f"<title>{title}</title><style>{_own('report.css')}</style>",
            f"<script>{get_plotlyjs()}</script></head>",
            f"<body><main>{''.join(body)}</main>",
            f"<script>{_own('report.js')}</script></body></html>",
            "",
        )
    )


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _head_line(report: Report) -> str:
    of = report.totals
    first_ms, last_ms = span_ms(of)
    cards = [
        ("topics", f"{len(of):,}", f"{len(report.partitions):,} partitions"),
        ("messages", f"{sum(one.messages for one in of):,}", _untimed(of)),
        ("bytes of values", byte_text(sum(one.bytes for one in of)), f"{sum(one.bytes for one in of):,} bytes"),
        ("time span", duration_text((last_ms - first_ms) // 1000), f"{_moment(first_ms)} to {_moment(last_ms)} UTC"),
    ]
    told = "".join(
        f"<div class='card'><span>{name}</span><strong>{escape(value)}</strong><small>{escape(more)}</small></div>"
        for name, value, more in cards
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    made = f"Drawn {now} by <code>tailrace pipeline analyze</code>. Drag to zoom, double-click to go back."
    return f"<header><h1>History {escape(report.history)}</h1><p>{made}</p><div class='cards'>{told}</div></header>"


def _untimed(of: Sequence[TopicTotal]) -> str:
    count = sum(one.untimed for one in of)
    return f"{count:,} of them without a timestamp, in no time line" if count else "each with a timestamp"


def _plots(report: Report) -> Iterator[str]:
    if not report.totals:
        yield "<p class='none'>The history has no records.</p>"
        return
    if report.lines:
        yield _section("over-time", "Over time", _about_time(report), over_time(report))
    yield _section("sizes", "Sizes of messages", "Values alone, without keys and headers.", sizes(report))
    yield _section(
        "shares", "Share of each partition", "A row is a topic, a piece of it a partition, by its number.",
        shares(report),
    )  # fmt: skip


def _about_time(report: Report) -> str:
    """Text about the clocks behind the times, and about what is not shown and why."""
    told = [_clocks(report.totals)]
    if not any(step.latency for line in report.lines for step in line.steps):
        told.append("No record has a header sent-at (milliseconds since 1970), so there is no latency to show.")
    if not any(step.archive_delay for line in report.lines for step in line.steps):
        told.append(f"The archive delay is not shown: the history's log has more than {RANGES_MAX:,} ranges, or none.")
    if not report.lags:
        told.append("Archive the topic __consumer_offsets, too, to see how far consumer groups are behind.")
    elif report.lag_lines_in_all > len(report.lags):
        told.append(f"Of {report.lag_lines_in_all:,} lags the {LAG_LINES_MAX} largest are shown.")
    return " ".join(told)


def _clocks(of: Sequence[TopicTotal]) -> str:
    """Text about which clock set the timestamps; lists topics by clock if the clocks differ."""
    kinds = sorted({one.clock: None for one in of})
    if len(kinds) == 1:
        return f"Time is that of the records' timestamps, by the clock of the {kinds[0]}."
    told = []
    for kind in kinds:
        names = [one.topic for one in of if one.clock == kind]
        told.append(f"{', '.join(names) if len(names) <= NAMES_TOLD_MAX else f'{len(names)} topics'} by the {kind}")
    return f"Time is that of the records' timestamps, by different clocks: {'; '.join(told)}."


def _section(name: str, title: str, about: str, figure: "Figure") -> str:
    """A section with a figure. Plotly writes `<` as `\\u003c` in JSON, so the JSON cannot close its script element."""
    return (
        f"<section><h2>{title}</h2><p>{escape(about)}</p><div class='figure' id='{name}'></div>"
        f"<script type='application/json' data-figure='{name}'>{figure.to_json()}</script></section>"
    )


def _tables(tables: Sequence[ResultTable]) -> Iterator[str]:
    zone = datetime.now().astimezone().tzname() or "the machine that made them"
    yield f"<section><h2>Tables</h2><p>Times in tables are those of {escape(zone)}.</p>"
    for table in tables:
        title, count = escape(table.title), len(table.rows)
        is_open = " open" if 0 < count <= ROWS_OPEN_MAX else ""
        body = _table(table) if count else "<p class='none'>nothing</p>"
        yield f"<details{is_open}><summary>{title} <small>{count:,} rows</small></summary>{body}</details>"
    yield "</section>"


def _table(table: ResultTable) -> str:
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return f"<div class='wide'><table><tr>{heads}</tr>{rows}</table></div>"


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
        return f"<td class='number'>{text}</td>"
    return f"<td>{escape(str(value))}</td>"


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def byte_text(count: int) -> str:
    """A number of bytes as text, in the largest unit that gives at least 1."""
    number, unit = float(count), 0
    while number >= UNIT_STEP and unit < len(BYTE_UNITS) - 1:
        number, unit = number / UNIT_STEP, unit + 1
    return f"{number:,.3g} {BYTE_UNITS[unit]}" if unit else f"{count} {BYTE_UNITS[0]}"
