"""The state tables of raft, groups, transactions and queues, their transcripts, and the pages of docs that show them.

`python -m tests.unit.test_state_tables` rewrites transcripts and pages; read the difference before committing it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailrace.groups.classic.states import TRANSITIONS as CLASSIC
from tailrace.groups.consumer.states import STEPS
from tailrace.groups.share.states import TRANSITIONS as SHARE
from tailrace.queues.delivery import TRANSITIONS as DELIVERY
from tailrace.raft.roles import TRANSITIONS as ROLES
from tailrace.transactions.states import TRANSITIONS as TRANSACTIONS
from tests.unit.groups.classic.stage import Stage as ClassicStage
from tests.unit.groups.consumer.mixed_stage import MixedStage
from tests.unit.groups.share.stage import ShareStage
from tests.unit.queues.stage import Stage as QueueStage
from tests.unit.raft.stage import Stage as RaftStage
from tests.unit.state_tables import Page, Stage, Transitions, replay, transcripts_of
from tests.unit.transactions.stage import Stage as TransactionStage


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTable:
    transitions: Transitions
    folder: str  # of its transcripts
    stage: Callable[[], Stage]  # plays them
    page: Page

    @property
    def transcripts(self) -> list[Path]:
        return transcripts_of(self.folder)


TABLES = (
    StateTable(
        transitions=ROLES,
        folder="raft",
        stage=RaftStage,
        page=Page("raft.md", "raft/roles.py", {"unattached": "is a voter", "observer": "is not a voter"}),
    ),
    StateTable(
        transitions=CLASSIC,
        folder="groups",
        stage=ClassicStage,
        page=Page("groups.md", "groups/classic/states.py", {"Empty": "is created", "Stable": "is loaded from the log"}),
    ),
    StateTable(
        transitions=STEPS,
        folder="consumer_groups",
        stage=MixedStage,
        page=Page("groups.md", "groups/consumer/states.py", {"Stable": "joins without partitions"}),
    ),
    StateTable(
        transitions=SHARE,
        folder="share_groups",
        stage=ShareStage,
        page=Page("groups.md", "groups/share/states.py", {"Empty": "is created"}),
    ),
    StateTable(
        transitions=TRANSACTIONS,
        folder="transactions",
        stage=TransactionStage,
        page=Page("transactions.md", "transactions/states.py", {"Empty": "is initialised the first time"}),
    ),
    StateTable(
        transitions=DELIVERY,
        folder="queues",
        stage=QueueStage,
        page=Page("queues.md", "queues/delivery.py", {"Available": "is appended to the log"}),
    ),
)
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.folder)
each_transcript = pytest.mark.parametrize(
    ("table", "path"),
    [pytest.param(table, path, id=f"{table.folder}-{path.stem}") for table in TABLES for path in table.transcripts],
)


@each_transcript
def test_transcript(table: StateTable, path: Path) -> None:
    text = path.read_text()
    assert replay(text, table.stage()) == text


@each_table
def test_the_transcripts_take_every_row(table: StateTable) -> None:
    stage = table.stage()
    for path in table.transcripts:
        replay(path.read_text(), stage)
    assert {(state, cause) for state, cause, _ in stage.moves} == set(table.transitions)


@each_table
def test_the_page_shows_the_current_table(table: StateTable) -> None:
    drawn = table.page.drawn(table.transitions)
    assert table.page.path.read_text() == drawn, "redraw it: python -m tests.unit.test_state_tables"


if __name__ == "__main__":
    for table in TABLES:
        for path in table.transcripts:
            path.write_text(replay(path.read_text(), table.stage()))
        table.page.path.write_text(table.page.drawn(table.transitions))
