"""Outcomes as a table: in colour on the terminal, in Markdown in `benchmarks/README.md`."""

import platform
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.outcomes import Line, Outcome

README: Final = Path(__file__).parent / "README.md"
PIPED_WIDTH_CHARS: Final = 140  # rich assumes 80 without a terminal
VERDICTS: Final = {True: "yes", False: "MISSED", None: ""}


def cells(line: Line) -> tuple[str, ...]:
    other = next((line[kind] for kind in ("floor", "one", "peer") if kind in line), None)
    return (
        line["name"],
        line["fsync"],
        line["acks"],
        f"{figure(line['value'])} {line['unit']}",
        "" if other is None else figure(other),
        "" if other is None else f"{line['ratio']:.2f} x",
        line["threshold"] or "",
        VERDICTS[line["ok"]],
    )


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def heads(beside: str) -> tuple[str, ...]:
    return ("case", "fsync", "acks", "ours", beside, "ratio", "threshold", "met")


def show(outcomes: Sequence[Outcome], *, title: str, beside: str) -> None:
    table = Table(title=title, title_justify="left")
    for head in heads(beside):
        table.add_column(head, justify="left" if head in ("case", "fsync", "acks", "met") else "right")
    for outcome in outcomes:
        table.add_row(*cells(outcome.as_json()), style="red" if outcome.ok is False else None)
    Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH_CHARS).print(table)


def put_into_readme(lines: Sequence[Line], *, marker: str, beside: str) -> None:
    """Replace the text between `<!-- MARKER:begin -->` and `<!-- MARKER:end -->`."""
    begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->"
    before, _, rest = README.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{README} has no markers {begin.strip()} and {end}")
    README.write_text(before + begin + markdown(lines, beside) + found + after)


def markdown(lines: Sequence[Line], beside: str) -> str:
    days = sorted({line["measured"] for line in lines})
    last = days[-1]
    older = Counter(line["measured"] for line in lines if line["measured"] != last)
    made = f"Measured on {last}, {platform.system()}, Python {platform.python_version()}"
    made += "".join(f"; {count} lines on {day}" for day, count in sorted(older.items())) + ".\n\n"
    rows = [(*heads(beside), "measured"), ("---", "---", "---", "---:", "---:", "---:", "---:", "---", "---")]
    rows += [(*cells(line), line["measured"]) for line in lines]
    return made + "".join(f"| {' | '.join(row)} |\n" for row in rows)
