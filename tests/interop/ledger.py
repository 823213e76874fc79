"""The ledger: which feature passed with which client, a list that only grows.

Every report of a feature carries an `Entry` (`conftest.py` puts it there), across workers too, so one keeper in the
process that started them sees all. At the end of a run of the whole folder it compares what came out with what
`LEDGER.md` says: a feature that stood as passing and did not pass now, or was not even tried, fails the run and the
file stays as it is; otherwise the file is written anew. The same outcome gives the same bytes. A client that is not
installed keeps its column.

The ledger speaks of Tailrace: against another broker nothing is compared or written, unless
`TAILRACE_INTEROP_LEDGER` names a file for it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import pytest

here = Path(__file__).parent
Outcome = Literal["passes", "fails"]
Cell = tuple[str, str, str]  # area, feature, client
not_there = "no call"

head = """\
# Interop ledger

Written by the tests of this folder at the end of every whole run (`make interop`, `make test`); not by hand.
A feature that stands here as passing and stops passing fails the run: the list only grows.
"{not_there}": the client has none for it, or no way to say it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One try of one feature with one client. `order` is its place in the collection, `of` the collection's size."""

    area: str
    feature: str
    client: str
    version: str | None  # None: not installed here
    column: int
    order: int
    of: int

    @property
    def cell(self) -> Cell:
        return self.area, self.feature, self.client

    def properties(self) -> dict[str, object]:
        return asdict(self)


class LedgerKeeper:
    """Collects the reports of a run; writes or defends the ledger at its end."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._failed: dict[str, bool] = {}
        self._lost: list[Cell] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, properties in report.user_properties:
            if name == "interop" and isinstance(properties, dict):
                self._entries[report.nodeid] = Entry(**properties)
                self._failed[report.nodeid] = self._failed.get(report.nodeid, False) or report.failed

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        path = ledger_path(os.environ)
        if path is None or not self._whole():
            return
        before = path.read_text() if path.exists() else ""
        stood, now = parse(before), self._outcomes()
        away = {entry.client for entry in self._entries.values() if entry.version is None}
        self._lost = [
            cell for cell, outcome in stood.items()
            if outcome == "passes" and now.get(cell) != "passes" and cell[2] not in away
        ]  # fmt: skip
        if self._lost:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        kept = {cell: outcome for cell, outcome in stood.items() if cell[2] in away}
        after = self._written({**now, **kept}, kept_versions(before))
        if after != before:
            path.write_text(after)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lost:
            terminalreporter.section("interop ledger", red=True)
        for area, feature, client in self._lost:
            terminalreporter.line(f"stood as passing, did not pass now: {client}: {area}: {feature}", red=True)

    def _whole(self) -> bool:
        """Every file of the folder was there, and every test that was collected has been run."""
        files = {Path(nodeid.partition("::")[0]).name for nodeid in self._entries}
        return files == {path.name for path in here.glob("test_*.py")} and all(
            entry.of == len(self._entries) for entry in self._entries.values()
        )

    def _outcomes(self) -> dict[Cell, Outcome]:
        outcomes: dict[Cell, Outcome] = {}
        for nodeid, entry in self._entries.items():
            if entry.version is not None and outcomes.get(entry.cell) != "fails":
                outcomes[entry.cell] = "fails" if self._failed[nodeid] else "passes"
        return outcomes

    def _written(self, outcomes: Mapping[Cell, Outcome], kept: Mapping[str, str]) -> str:
        entries = sorted(self._entries.values(), key=lambda entry: entry.order)
        clients = {entry.client: entry.version for entry in sorted(entries, key=lambda entry: entry.column)}
        versions = {client: version or kept.get(client, "not installed") for client, version in clients.items()}
        rows = list(dict.fromkeys((entry.area, entry.feature) for entry in entries))
        lines = [head.format(not_there=not_there), *_summary(versions, outcomes)]
        for area, features in groupby(rows, key=lambda row: row[0]):
            lines += ["", f"## {area}", *_table(["feature", *versions])]
            for _, feature in features:
                lines.append(_row([feature, *(outcomes.get((area, feature, c), not_there) for c in versions)]))
        return "\n".join(lines) + "\n"


def ledger_path(environment: Mapping[str, str]) -> Path | None:
    if "TAILRACE_INTEROP_LEDGER" in environment:
        return Path(environment["TAILRACE_INTEROP_LEDGER"])
    return None if "TAILRACE_INTEROP_BOOTSTRAP" in environment else here / "LEDGER.md"


def parse(text: str) -> dict[Cell, Outcome]:
    """What a written ledger claims."""
    return {
        (area, cells[0], client): outcome
        for area, columns, cells in _tables(text)
        for client, word in zip(columns[1:], cells[1:], strict=True)
        for outcome in _outcome(word)
    }


def kept_versions(text: str) -> dict[str, str]:
    return {cells[0]: cells[1] for area, _, cells in _tables(text) if area == ""}


def _outcome(word: str) -> tuple[Outcome, ...]:
    if word == "passes":
        return ("passes",)
    return ("fails",) if word == "fails" else ()


def _tables(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
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


def _summary(versions: Mapping[str, str], outcomes: Mapping[Cell, Outcome]) -> Iterator[str]:
    yield from _table(["client", "version", "pass", "fail"])
    for client, version in versions.items():
        words = [outcome for (_, _, whose), outcome in outcomes.items() if whose == client]
        yield _row([client, version, str(words.count("passes")), str(words.count("fails"))])


def _table(columns: list[str]) -> list[str]:
    return [_row(columns), "|" + "---|" * len(columns)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
