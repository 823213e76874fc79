"""Outcomes as a table: in colour on the terminal, in Markdown in `benchmarks/README.md`."""

import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.outcomes import Outcome

README: Final = Path(__file__).parent / "README.md"
PIPED_WIDTH_CHARS: Final = 140  # rich assumes 80 without a terminal
VERDICTS: Final = {True: "yes", False: "MISSED", None: ""}


def cells(outcome: Outcome) -> tuple[str, ...]:
    other, ratio = outcome.other, outcome.ratio
    return (
        outcome.name,
        outcome.fsync,
        outcome.acks,
        f"{figure(outcome.value)} {outcome.unit}",
        "" if other is None else figure(other),
        "" if ratio is None else f"{ratio:.2f} x",
        str(outcome.threshold or ""),
        VERDICTS[outcome.ok],
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
        table.add_row(*cells(outcome), style="red" if outcome.ok is False else None)
    Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH_CHARS).print(table)


def put_into_readme(outcomes: Sequence[Outcome], *, marker: str, beside: str) -> None:
    """Replace the text between `<!-- MARKER:begin -->` and `<!-- MARKER:end -->`."""
    begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->"
    before, _, rest = README.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{README} has no markers {begin.strip()} and {end}")
    README.write_text(before + begin + markdown(outcomes, beside) + found + after)


def markdown(outcomes: Sequence[Outcome], beside: str) -> str:
    rows = [heads(beside), ("---", "---", "---", "---:", "---:", "---:", "---:", "---"), *map(cells, outcomes)]
    made = f"Measured on {datetime.now(UTC):%Y-%m-%d}, {platform.system()}, Python {platform.python_version()}.\n\n"
    return made + "".join(f"| {' | '.join(row)} |\n" for row in rows)
