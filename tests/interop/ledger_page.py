"""The ledger as a page: tables that people read and the next run reads back. The same outcomes give the same bytes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

Outcome = Literal["passes", "not tried", "fails"]  # from best to worst
Cell = tuple[str, str, str]  # area, feature, client
NOT_THERE = "no call"

HEAD = f"""\
# Interop ledger

Written by the tests of this folder at the end of every whole run (`make interop`, `make test`); not by hand.
Clients that need a toolchain (Java, Go, Node), and areas that take long, are tried by `make interop` only; what is
said of them stands until then.
A feature that stands here as passing and stops passing fails the run: the list only grows.
"{NOT_THERE}": the client has none for it, or no way to say it; "not tried": a client was not installed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Versions by client in the order of columns, rows as (area, feature) in the order of the page."""

    versions: Mapping[str, str]
    rows: Sequence[tuple[str, str]]
    outcomes: Mapping[Cell, Outcome]

    def text(self) -> str:
        lines = [HEAD, *self._summary()]
        for area, rows in groupby(self.rows, key=lambda row: row[0]):
            lines += ["", f"## {area}", *_table_head(["feature", *self.versions])]
            for _, feature in rows:
                cells = [self.outcomes.get((area, feature, client), NOT_THERE) for client in self.versions]
                lines.append(_row([feature, *cells]))
        return "\n".join(lines) + "\n"

    def _summary(self) -> Iterator[str]:
        yield from _table_head(["client", "version", "pass", "fail"])
        for client, version in self.versions.items():
            words = [outcome for (_, _, whose), outcome in self.outcomes.items() if whose == client]
            yield _row([client, version, str(words.count("passes")), str(words.count("fails"))])


def read_page(text: str) -> Page:
    """What a written page claims; an empty text claims nothing."""
    versions: dict[str, str] = {}
    rows: list[tuple[str, str]] = []
    outcomes: dict[Cell, Outcome] = {}
    for area, columns, cells in _rows(text):
        if not area:
            versions[cells[0]] = cells[1]
            continue
        rows.append((area, cells[0]))
        for client, word in zip(columns[1:], cells[1:], strict=True):
            for outcome in get_args(Outcome):
                if outcome == word:
                    outcomes[area, cells[0], client] = outcome
    return Page(versions=versions, rows=rows, outcomes=outcomes)


def _rows(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each row as (area, names of columns, cells); the summary's area is empty."""
    area, columns = "", list[str]()
    for line in text.splitlines():
        if line.startswith("## "):
            area, columns = line[3:], []
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if columns:
                yield area, columns, cells
            columns = columns or cells


def _table_head(columns: list[str]) -> list[str]:
    return [_row(columns), "|" + "---|" * len(columns)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
