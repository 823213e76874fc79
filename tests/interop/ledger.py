"""The ledger: which feature passed with which client, a list that only grows.

Every report of a feature carries an `Entry` (`conftest.py` puts it there), across workers too, so one keeper in the
process that started them sees all. At the end of a run of the whole folder it compares what came out with what
`LEDGER.md` says: a feature that stood as passing and did not pass now, or was not even tried, fails the run and the
file stays as it is; otherwise the file is written anew. A client that is not installed keeps its column.

The ledger speaks of Tailrace: against another broker nothing is compared or written, unless
`TAILRACE_INTEROP_LEDGER` names a file for it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.interop.ledger_page import Cell, Outcome, Page, read_page

here = Path(__file__).parent


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
        """In a form that travels from worker to keeper."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An entry and what came of it."""

    entry: Entry
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a whole run means: either something was lost, or this is the new page."""

    lost: Sequence[Cell]
    text: str


def settle(run: Sequence[Tried], before: str) -> Verdict:
    stood, now = read_page(before), _outcomes(run)
    entries = sorted((tried.entry for tried in run), key=lambda entry: entry.order)
    away = {entry.client: True for entry in entries if entry.version is None}
    lost = [
        cell
        for cell, outcome in stood.outcomes.items()
        if outcome == "passes" and now.get(cell) != "passes" and cell[2] not in away
    ]
    kept = {cell: outcome for cell, outcome in stood.outcomes.items() if cell[2] in away}
    page = Page(
        versions={
            entry.client: entry.version or stood.versions.get(entry.client, "not installed")
            for entry in sorted(entries, key=lambda entry: entry.column)
        },
        rows=list(dict.fromkeys((entry.area, entry.feature) for entry in entries)),
        outcomes={**now, **kept},
    )
    return Verdict(lost=lost, text=before if lost else page.text())


def _outcomes(run: Sequence[Tried]) -> dict[Cell, Outcome]:
    """A feature of several tests passes when all of them do."""
    outcomes: dict[Cell, Outcome] = {}
    for tried in run:
        cell = tried.entry.cell
        if tried.entry.version is not None and outcomes.get(cell) != "fails":
            outcomes[cell] = "fails" if tried.failed else "passes"
    return outcomes


class LedgerKeeper:
    """Collects the reports of a run; writes or defends the ledger at its end."""

    def __init__(self) -> None:
        self._tried: dict[str, Tried] = {}
        self._lost: Sequence[Cell] = ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, properties in report.user_properties:
            if name == "interop" and isinstance(properties, dict):
                earlier = self._tried.get(report.nodeid)  # setup, call and teardown each report
                failed = report.failed or (earlier is not None and earlier.failed)
                self._tried[report.nodeid] = Tried(entry=Entry(**properties), failed=failed)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        path = ledger_path(os.environ)
        if path is None or not self._whole():
            return
        before = path.read_text() if path.exists() else ""
        verdict = settle(list(self._tried.values()), before)
        self._lost = verdict.lost
        if verdict.lost:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif verdict.text != before:
            path.write_text(verdict.text)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lost:
            terminalreporter.section("interop ledger", red=True)
        for area, feature, client in self._lost:
            terminalreporter.line(f"stood as passing, did not pass now: {client}: {area}: {feature}", red=True)

    def _whole(self) -> bool:
        """Every file of the folder was there, and every test that was collected has been run."""
        files = {Path(nodeid.partition("::")[0]).name for nodeid in self._tried}
        there = {path.name for path in here.glob("test_*.py")}
        return files == there and all(tried.entry.of == len(self._tried) for tried in self._tried.values())


def ledger_path(environment: Mapping[str, str]) -> Path | None:
    if "TAILRACE_INTEROP_LEDGER" in environment:
        return Path(environment["TAILRACE_INTEROP_LEDGER"])
    return None if "TAILRACE_INTEROP_BOOTSTRAP" in environment else here / "LEDGER.md"
