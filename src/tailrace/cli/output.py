"""Output of commands: tables for people, JSON for scripts, and progress bars on standard error if it is a terminal."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tailrace.cli.failure import NotFound

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


def say(text: str) -> None:
    """Print a message to standard error, so that it never mixes with data."""
    print(text, file=sys.stderr)


def print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table to standard output. Numeric columns are right-aligned; nothing is truncated in a pipe."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    body = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numbers = bool(body) and all(isinstance(row[index], int | float) for row in body)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in body:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = 10_000
    console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if value >= 10 else f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= 10_000 else str(value)
    return str(value)


@contextmanager
def progress(*, shown: bool = True) -> Iterator["Progress"]:
    """A progress bar on standard error; hidden if standard error is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        yield bar


def show_each(names: Sequence[str], find: Callable[[str], T], show: Callable[[T], None], *, json: bool) -> None:
    """Show the things that exist, with `json` as one list, then fail with the names of those that do not."""
    found, missing = [], []
    for name in names:
        try:
            found.append(find(name))
        except NotFound as failure:
            missing.append(str(failure))
    if json and found:
        print_json(found)
    for one in [] if json else found:
        show(one)
    if missing:
        raise NotFound("\n".join(missing))
