"""The share coordinator's machine against a naive model, and against its own log, replayed from any snapshot on.

The model has one entry per offset. Requests come from leaders of several epochs, in any order and more than once.
"""

from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.model.faults import Fault, FencedLeaderEpoch, FencedStateEpoch, InvalidRequest
from tailrace.model.ids import Id
from tailrace.queues import share_states
from tailrace.queues.records import Entry, ShareSnapshotValue, decode_entry, encode_entry
from tailrace.queues.share_states import ShareTurn, StoredShares
from tailrace.queues.state import ShareKey, StateBatch
from tailrace.records.record import Record
from tests.properties.test_state_batches import Offsets, ascending, by_offset, merged

LEVEL = 3
UPDATES_PER_SNAPSHOT = 3
KEYS = [ShareKey("g", Id(b"T" * 16), 0), ShareKey("g:h", Id(b"T" * 16), 0), ShareKey("g", Id(b"U" * 16), 1)]
keys = st.sampled_from(KEYS)
epochs = st.integers(0, 3)


class Model:
    """One share partition."""

    def __init__(self, state_epoch: int, leader_epoch: int, start: int, metadata_end: int) -> None:
        self.state_epoch = state_epoch
        self.metadata_end = metadata_end
        self.leader_epoch = leader_epoch
        self.start = start
        self.complete_count = 0
        self.offsets: Offsets = {}


class ShareStateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.machine = StoredShares()
        self.log: list[Entry] = []
        self.models: dict[ShareKey, Model] = {}
        self.now_ms = 0

    @rule(key=keys, state_epoch=epochs, start=st.integers(-1, 20), metadata_end=st.integers(-1, 9))
    def initialize(self, key: ShareKey, state_epoch: int, start: int, metadata_end: int) -> None:
        known = self.models.get(key)
        fault = self._turn(lambda turn: self.machine.initialize(key, state_epoch, start, metadata_end, turn))
        assert isinstance(fault, FencedStateEpoch) == (known is not None and known.state_epoch > state_epoch)
        if known is None or known.state_epoch < state_epoch:
            leader_epoch = -1 if known is None else known.leader_epoch
            self.models[key] = Model(state_epoch, leader_epoch, start, metadata_end)

    @rule(key=keys, leader_epoch=epochs)
    def read(self, key: ShareKey, leader_epoch: int) -> None:
        found: list[Any] = []
        fault = self._turn(lambda turn: found.append(self.machine.read(key, leader_epoch, turn)))
        known = self.models.get(key)
        if known is None:
            assert isinstance(fault, InvalidRequest)
        elif leader_epoch < known.leader_epoch:
            assert isinstance(fault, FencedLeaderEpoch)
        else:
            known.leader_epoch = leader_epoch
            assert by_offset(list(found[0].batches)) == known.offsets
            assert found[0].metadata_end == known.metadata_end

    @rule(key=keys, state=epochs, leader=epochs, start=st.integers(-1, 40), count=st.integers(0, 9), new=ascending())
    def write(self, key: ShareKey, state: int, leader: int, start: int, count: int, new: list[StateBatch]) -> None:
        fault = self._turn(lambda turn: self.machine.write(key, state, leader, start, count, new, turn))
        known = self.models.get(key)
        if known is None or (leader >= known.leader_epoch and state > known.state_epoch):
            assert isinstance(fault, InvalidRequest)
        elif leader < known.leader_epoch:
            assert isinstance(fault, FencedLeaderEpoch)
        elif state < known.state_epoch:
            assert isinstance(fault, FencedStateEpoch)
        else:
            assert fault is None
            known.leader_epoch = leader
            known.offsets = merged(known.offsets, by_offset(new))
            if start > known.start:
                known.start, known.complete_count = start, count
            elif start == known.start:
                known.complete_count = max(known.complete_count, count)
            known.offsets = {offset: said for offset, said in known.offsets.items() if offset >= known.start}

    @rule(key=keys)
    def delete(self, key: ShareKey) -> None:
        assert self._turn(lambda turn: self.machine.delete(key, turn)) is None
        self.models.pop(key, None)

    @rule()
    def rewrite(self) -> None:
        """Afterwards the log is complete from where that began."""
        begin = len(self.log)
        self._turn(lambda turn: self.machine.rewrite(list(self.machine.states), turn))
        del self.log[:begin]

    @rule(topic=st.sampled_from([b"T" * 16, b"U" * 16]))
    def delete_topic(self, topic: bytes) -> None:
        self._turn(lambda turn: self.machine.delete_topics([Id(topic)], turn))
        self.models = {key: known for key, known in self.models.items() if key.topic_id != topic}

    def _turn(self, act: Any) -> Fault | None:
        self.now_ms += 1
        turn = ShareTurn(wall_ms=self.now_ms)
        try:
            with patch.object(share_states, "UPDATES_PER_SNAPSHOT", UPDATES_PER_SNAPSHOT):
                act(turn)
        except Fault as fault:
            assert not turn.records, "a refused request changes nothing"
            return fault
        for entry in turn.records:
            stored = encode_entry(entry, LEVEL, self.now_ms)
            read = decode_entry(Record(offset=0, timestamp=self.now_ms, key=stored.key, value=stored.value, headers=()))
            assert read == entry
            self.log.append(read)
            self.machine.replay(read)
        return None

    @invariant()
    def is_what_the_model_says(self) -> None:
        assert self.machine.states.keys() == self.models.keys()
        for key, known in self.models.items():
            stored = self.machine.states[key]
            assert (stored.state_epoch, stored.leader_epoch) == (known.state_epoch, known.leader_epoch)
            assert (stored.start, stored.complete_count) == (known.start, known.complete_count)
            assert by_offset(stored.batches) == known.offsets
            summary = self.machine.summary(key)
            assert summary is not None
            assert (summary.start, summary.complete_count, summary.batches) == (known.start, known.complete_count, ())

    @invariant()
    def is_what_its_log_says(self) -> None:
        again = StoredShares()
        for entry in self.log:
            again.replay(entry)
        assert again.states == self.machine.states

    @invariant()
    def is_what_its_last_snapshot_and_the_updates_after_it_say(self) -> None:
        again = StoredShares()
        for entry in self._since_last_snapshots():
            again.replay(entry)
        assert again.states == self.machine.states
        assert all(one.updates <= UPDATES_PER_SNAPSHOT for one in again.states.values())

    def _since_last_snapshots(self) -> list[Entry]:
        found: dict[ShareKey, list[Entry]] = {}
        for entry in self.log:
            key = ShareKey(entry.key.group, Id(entry.key.topic_id), entry.key.partition)
            if entry.value is None or isinstance(entry.value, ShareSnapshotValue):
                found[key] = []
            found[key].append(entry)
        return [entry for entries in found.values() for entry in entries]


TestShareStates = ShareStateMachine.TestCase
TestShareStates.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
