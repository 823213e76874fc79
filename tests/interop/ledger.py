"""The ledger: which feature passed with which client, a list that only grows.

Every report of a feature carries an `Entry` (`conftest.py` puts it there), across workers too, so one keeper in the
process that started them sees all. At the end of a run of the whole folder it compares what came out with what
`LEDGER.md` says: a feature that stood as passing and did not pass now, or is gone from the tests, fails the run and
the file stays as it is; otherwise the file is written anew. What is skipped, because a client is not installed, keeps
what stood; so does what is marked long, in a run that leaves all of that out (`make test`): clients that need a
toolchain, and whole files.

The ledger speaks of Tailrace: against another broker nothing is compared or written, unless
`TAILRACE_INTEROP_LEDGER` names a file for it.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import pytest

from tests.interop.ledger_page import Cell, Outcome, Page, read_page

here = Path(__file__).parent
ALL_LONG = "\npytestmark = pytest.mark.long\n"  # in a file whose tests are all long
WORDS: Mapping[str, Outcome] = {"passed": "passes", "skipped": "not tried", "failed": "fails"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One try of one feature with one client. `order` is its place in the collection.

    `of` says how many of its kind were collected; there are two kinds, what is marked long and what is not."""

    area: str
    feature: str
    client: str
    version: str | None  # None: not installed here
    column: int
    order: int
    of: int
    long: bool

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
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a whole run means: either something was lost, or this is the new page."""

    lost: Sequence[Cell]
    text: str


def settle(run: Sequence[Tried], before: str) -> Verdict:
    stood, now = read_page(before), _outcomes(run)
    entries = sorted((tried.entry for tried in run), key=lambda entry: entry.order)
    left_out = _left_out(run, stood)
    absent = [client for _, _, client in left_out if client not in {entry.client for entry in entries}]
    now |= {cell: stood.outcomes[cell] for cell in stood.outcomes if now.get(cell) == "not tried" or cell in left_out}
    lost = [cell for cell, outcome in stood.outcomes.items() if outcome == "passes" and now.get(cell) != "passes"]
    page = Page(
        versions={
            **{
                entry.client: entry.version or stood.versions.get(entry.client, "not installed")
                for entry in sorted(entries, key=lambda entry: entry.column)
            },
            **{client: version for client, version in stood.versions.items() if client in absent},
        },
        rows=_rows(entries, left_out),
        outcomes=now,
    )
    return Verdict(lost=lost, text=before if lost else page.text())


def _left_out(run: Sequence[Tried], stood: Page) -> list[Cell]:
    """What stood of clients and areas of which nothing was tried, when nothing long was."""
    if any(tried.entry.long for tried in run):
        return []
    clients = dict.fromkeys(tried.entry.client for tried in run)
    areas = dict.fromkeys(tried.entry.area for tried in run)
    return [cell for cell in stood.outcomes if cell[0] not in areas or cell[2] not in clients]


def _rows(entries: Sequence[Entry], left_out: Sequence[Cell]) -> list[tuple[str, str]]:
    """By area. In each, what only long tests can show comes last, so that both kinds of run agree."""
    rows = [(entry.area, entry.feature) for entry in entries if not entry.long]
    rows += [(entry.area, entry.feature) for entry in entries if entry.long]
    rows += [(area, feature) for area, feature, _ in left_out]
    return sorted(dict.fromkeys(rows), key=lambda row: row[0])


def _outcomes(run: Sequence[Tried]) -> dict[Cell, Outcome]:
    outcomes: dict[Cell, Outcome] = {}
    for tried in run:
        cell = tried.entry.cell
        outcomes[cell] = worse(outcomes.get(cell, "passes"), tried.outcome)
    return outcomes


def worse(one: Outcome, another: Outcome) -> Outcome:
    """A feature of several tests, and a test of several phases, is as good as its worst."""
    return max(one, another, key=get_args(Outcome).index)


class LedgerKeeper:
    """Collects the reports of a run; writes or defends the ledger at its end."""

    def __init__(self) -> None:
        self._tried: dict[str, Tried] = {}
        self._lost: Sequence[Cell] = ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, properties in report.user_properties:
            if name == "interop" and isinstance(properties, dict):
                tried = self._tried.get(report.nodeid) or Tried(entry=Entry(**properties), outcome="passes")
                outcome = worse(tried.outcome, WORDS[report.outcome])
                self._tried[report.nodeid] = replace(tried, outcome=outcome)

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
        """Every file of the folder with features was there, and every test that was collected has been run."""
        files = {Path(nodeid.partition("::")[0]).name for nodeid in self._tried}
        kinds = Counter(tried.entry.long for tried in self._tried.values())
        texts = {path.name: path.read_text() for path in here.glob("test_*.py")}
        there = {name for name, text in texts.items() if "@feature(" in text and (kinds[True] or ALL_LONG not in text)}
        return files >= there and all(tried.entry.of == kinds[tried.entry.long] for tried in self._tried.values())


def ledger_path(environment: Mapping[str, str]) -> Path | None:
    if "TAILRACE_INTEROP_LEDGER" in environment:
        return Path(environment["TAILRACE_INTEROP_LEDGER"])
    return None if "TAILRACE_INTEROP_BOOTSTRAP" in environment else here / "LEDGER.md"
