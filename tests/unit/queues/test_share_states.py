"""The state machine of the share coordinator, one rule at a time; tests/properties has it against a model."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.faults import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest
from tailrace.model.ids import Id
from tailrace.queues.records import Entry, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from tailrace.queues.share_states import UPDATES_PER_SNAPSHOT, ShareTurn, StoredShares
from tailrace.queues.state import ANY_METADATA, DeliveryState, ShareKey, ShareState, StateBatch

AVAILABLE, ACKNOWLEDGED = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED
KEY = ShareKey("g", Id(b"T" * 16), 3)
RUNS = 50_000
SINGLY = 400


class Stage:
    """A machine and its log."""

    def __init__(self) -> None:
        self.machine = StoredShares()
        self.log: list[Entry] = []

    def turn(self, act: Callable[[StoredShares, ShareTurn], Any]) -> Any:
        turn = ShareTurn(wall_ms=1_000 + len(self.log))
        answer = act(self.machine, turn)
        for entry in turn.records:
            self.machine.replay(entry)
        self.log += turn.records
        return answer

    def initialize(self, state_epoch: int = 1, start: int = 0, metadata_end: int = ANY_METADATA) -> None:
        self.turn(lambda machine, turn: machine.initialize(KEY, state_epoch, start, metadata_end, turn))

    def read(self, leader_epoch: int) -> ShareState:
        found = self.turn(lambda machine, turn: machine.read(KEY, leader_epoch, turn))
        assert isinstance(found, ShareState)
        return found

    def write(self, *batches: StateBatch, state: int = 1, leader: int = 0, start: int = 0, count: int = 0) -> None:
        self.turn(lambda machine, turn: machine.write(KEY, state, leader, start, count, batches, turn))


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.initialize()
    return stage


def done(first: int, last: int | None = None) -> StateBatch:
    return StateBatch(first, first if last is None else last, ACKNOWLEDGED, 1)


def test_a_snapshot_comes_first_and_after_every_500_updates(stage: Stage) -> None:
    for number in range(2 * UPDATES_PER_SNAPSHOT + 2):
        stage.write(done(2 * number))
    snapshots = [at for at, entry in enumerate(stage.log) if isinstance(entry.value, ShareSnapshotValue)]
    assert snapshots == [0, 501, 1002]
    assert [entry.value.snapshot_epoch for entry in stage.log if isinstance(entry.value, ShareSnapshotValue)] == [
        0,
        1,
        2,
    ]
    last = stage.log[-1].value
    assert isinstance(last, ShareSnapshotValue)
    assert len(last.state_batches) == 1002
    assert (last.create_timestamp, last.write_timestamp) == (1_000, 2_002)


def test_an_update_has_only_what_was_written(stage: Stage) -> None:
    stage.write(done(3), done(5, 9))
    stage.write(done(1), done(12), start=6, count=4)
    update = stage.log[-1].value
    assert isinstance(update, ShareUpdateValue)
    assert [(one.first_offset, one.last_offset) for one in update.state_batches] == [(12, 12)]
    assert stage.read(0).batches == (done(6, 9), done(12))


def test_a_new_leader_fences_those_before_it(stage: Stage) -> None:
    assert stage.read(4) == ShareState(state_epoch=1, start=0, complete_count=0)
    records = len(stage.log)
    assert stage.read(4).start == 0
    assert len(stage.log) == records, "the leader epoch is stored once"
    with pytest.raises(FencedLeaderEpoch, match=r"has been read in leader epoch 4, after 3"):
        stage.read(3)
    with pytest.raises(FencedLeaderEpoch):
        stage.write(done(1), leader=3)
    stage.write(done(1), leader=5)
    with pytest.raises(FencedLeaderEpoch):
        stage.read(4)


def test_setting_offsets_anew_forgets_batches_and_fences_writes_of_before(stage: Stage) -> None:
    stage.read(4)
    stage.write(done(1, 5), leader=4, count=5)
    stage.initialize(state_epoch=2, start=3)
    with pytest.raises(FencedStateEpoch, match=r"has state epoch 2, not 1"):
        stage.write(done(7), state=1, leader=4)
    with pytest.raises(FencedStateEpoch):
        stage.initialize(state_epoch=1, start=0)
    with pytest.raises(FencedLeaderEpoch):
        stage.read(3)
    assert stage.read(4) == ShareState(state_epoch=2, start=3, complete_count=0)


def test_initializing_again_with_the_same_state_epoch_does_nothing(stage: Stage) -> None:
    stage.write(done(1, 5), count=5)
    records = len(stage.log)
    stage.initialize(state_epoch=1, start=0)
    assert len(stage.log) == records
    assert stage.read(0).batches == (done(1, 5),)


def test_which_metadata_counts_is_kept_until_the_offsets_are_set_anew(stage: Stage) -> None:
    stage.initialize(state_epoch=2, metadata_end=70)
    for number in range(UPDATES_PER_SNAPSHOT + 1):
        stage.write(done(2 * number), state=2)
    assert isinstance(stage.log[-1].value, ShareSnapshotValue)
    assert stage.read(0).metadata_end == 70
    stage.initialize(state_epoch=3, metadata_end=90)
    assert stage.read(0).metadata_end == 90


def test_a_late_write_moves_nothing_back(stage: Stage) -> None:
    stage.write(done(10, 12), start=8, count=3)
    stage.write(done(9), start=4, count=7)
    update = stage.log[-1].value
    assert isinstance(update, ShareUpdateValue)
    assert (update.start_offset, update.delivery_complete_count) == (8, 3)
    assert stage.read(0) == ShareState(state_epoch=1, start=8, complete_count=3, batches=(done(9, 12),))
    stage.write(start=8, count=2)
    assert stage.read(0).complete_count == 3
    stage.write(start=13, count=0)
    assert stage.read(0) == ShareState(state_epoch=1, start=13, complete_count=0)


def test_an_update_of_kafka_leaves_the_start_as_it_is(stage: Stage) -> None:
    stage.write(done(10, 12), start=8, count=3)
    stage.machine.replay(
        Entry(
            ShareUpdateKey(group="g", topic_id=KEY.topic_id, partition=3),
            ShareUpdateValue(snapshot_epoch=0, leader_epoch=2, start_offset=-1, state_batches=()),
        )
    )
    assert stage.read(2) == ShareState(state_epoch=1, start=8, complete_count=3, batches=(done(10, 12),))


def test_not_before_travels_with_the_batch_that_wins(stage: Stage) -> None:
    stage.write(StateBatch(1, 4, AVAILABLE, 2, 7_000))
    stage.write(StateBatch(2, 2, AVAILABLE, 1, 9_000), StateBatch(3, 3, AVAILABLE, 3))
    assert stage.read(0).batches == (
        StateBatch(1, 2, AVAILABLE, 2, 7_000),
        StateBatch(3, 3, AVAILABLE, 3),
        StateBatch(4, 4, AVAILABLE, 2, 7_000),
    )


def test_what_was_never_initialized_can_be_neither_read_nor_written() -> None:
    stage = Stage()
    with pytest.raises(InvalidRequest, match=r"g:VFRUVFRUVFRUVFRUVFRUVA:3 was never initialized"):
        stage.read(1)
    with pytest.raises(InvalidRequest):
        stage.write(done(1))
    assert stage.machine.summary(KEY) is None
    stage.turn(lambda machine, turn: machine.delete(KEY, turn))
    assert stage.log == []


@pytest.mark.parametrize(
    "batches",
    [
        [done(5), done(4)],
        [done(5, 7), done(7)],
        [done(5, 4)],
        [done(-1)],
        [StateBatch(5, 5, DeliveryState.ACQUIRED, 1)],
    ],
)
def test_batches_that_no_leader_writes_are_refused(stage: Stage, batches: list[StateBatch]) -> None:
    with pytest.raises(InvalidRequest, match="cannot be stored"):
        stage.write(*batches)
    with pytest.raises(InvalidRequest, match="2 was never initialized"):
        stage.write(done(5), state=2)


def test_updates_whose_snapshot_is_no_longer_in_the_log_are_skipped(stage: Stage) -> None:
    """The log begins anywhere before a rewritten snapshot."""
    stage.write(done(1))
    stage.turn(lambda machine, turn: machine.rewrite([KEY, KEY._replace(partition=4)], turn))
    stage.write(done(3))
    assert [type(entry.value).__name__ for entry in stage.log[1:]] == [
        "ShareUpdateValue",
        "ShareSnapshotValue",
        "ShareUpdateValue",
    ]
    again = StoredShares()
    for entry in stage.log[1:]:
        again.replay(entry)
    assert again.states == stage.machine.states


def test_many_batches_are_merged_in_time_that_grows_with_what_is_written(stage: Stage) -> None:
    """With a walk over all batches for each that is written it would take minutes."""
    stage.write(*(done(4 * number) for number in range(RUNS)))
    stage.write(*(done(4 * number + 2) for number in range(RUNS)))
    singly = [4 * number + 1 for number in range(RUNS)]
    random.Random(1).shuffle(singly)
    for offset in singly[:SINGLY]:
        stage.write(done(offset))
    assert len(stage.machine.states[KEY].batches) == 2 * RUNS - SINGLY
