"""The share coordinator of one partition of `__share_group_state`, as a state machine without I/O.

It keeps what is stored of share partitions (`queues.state`). The leader of the topic partition decides what happens to
records, and has its decisions stored here; the next leader reads them.

Each request is a method call with a `ShareTurn`, which collects the records to append. A refused request raises a fault
and changes nothing; everything else changes by `replay` only. Two epochs keep late writes out:
- the *leader epoch* is that of the topic partition. A new leader reads the state, and from then on leaders before it
  are refused with `FencedLeaderEpoch`.
- the *state epoch* is that of the group when it set the offsets. Setting them anew raises it, and a leader that does
  not know of that yet is refused with `FencedStateEpoch`.

Every request may arrive twice, as its answer may have been lost. Batches are merged so that this does no harm
(`state_batches`), start offset and complete count never go back, and initializing again with the same state epoch does
nothing.

As in Kafka the log has two kinds of records. A snapshot is the whole state of a share partition; an update adds to it.
There is a snapshot when the state begins, and then after every `UPDATES_PER_SNAPSHOT` updates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from tailrace.model.alarms import Alarms
from tailrace.model.faults import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest
from tailrace.model.ids import NO_EPOCH, Id
from tailrace.queues import records
from tailrace.queues.records import Entry, ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from tailrace.queues.state import DeliveryState, ShareKey, ShareState, StateBatch
from tailrace.queues.state_batches import cut_below, merge

UPDATES_PER_SNAPSHOT: Final = 500
STATES: Final = tuple(DeliveryState)  # by Kafka's numbers; a call of the class takes longer


@dataclass(slots=True, kw_only=True)
class ShareTurn:
    """The inputs and outputs of one call of the state machine."""

    wall_ms: int
    records: list[Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StoredShare:
    """A share partition as the log has it."""

    state_epoch: int
    leader_epoch: int
    start: int
    complete_count: int
    batches: list[StateBatch]
    snapshot_epoch: int  # raised with every snapshot
    created_ms: int  # when its first snapshot was written
    metadata_end: int
    updates: int = 0  # since the last snapshot

    def apply(self, update: ShareUpdateValue) -> None:
        self.leader_epoch = max(self.leader_epoch, update.leader_epoch)
        now = self.start, self.complete_count
        # A write that arrives late has an earlier start, and its count is of that.
        self.start, self.complete_count = max(now, (update.start_offset, update.delivery_complete_count))
        merge(self.batches, _from_stored(update.state_batches))
        cut_below(self.batches, self.start)
        self.updates += 1

    def view(self, *, with_batches: bool = True) -> ShareState:
        return ShareState(
            state_epoch=self.state_epoch,
            start=self.start,
            complete_count=self.complete_count,
            batches=tuple(self.batches) if with_batches else (),
            metadata_end=self.metadata_end,
        )


class StoredShares:
    def __init__(self) -> None:
        self.states: dict[ShareKey, StoredShare] = {}
        self.alarms: Alarms[tuple[object, ...]] = Alarms()  # never set: nothing here depends on time

    # The log

    def replay(self, record: Entry) -> None:
        key = ShareKey(record.key.group, Id(record.key.topic_id), record.key.partition)
        match record.value:
            case None:
                self.states.pop(key, None)
            case ShareSnapshotValue() as value:
                self.states[key] = _from_snapshot(value)
            case ShareUpdateValue() as value if key in self.states:
                self.states[key].apply(value)

    def serve(self, turn: ShareTurn) -> None:
        """All state is in the log: there is nothing to begin with."""

    def ring(self, turn: ShareTurn) -> None:
        """No alarm is ever set."""

    # The group coordinator

    def initialize(self, key: ShareKey, state_epoch: int, start: int, metadata_end: int, turn: ShareTurn) -> None:
        """Begin at `start`, and forget what was stored with an earlier state epoch."""
        known = self.states.get(key)
        if known is not None and known.state_epoch > state_epoch:
            _refuse_state_epoch(key, known, state_epoch)
        if known is not None and known.state_epoch == state_epoch:
            return
        new = StoredShare(
            state_epoch=state_epoch,
            leader_epoch=NO_EPOCH if known is None else known.leader_epoch,
            start=start,
            complete_count=0,
            batches=[],
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            created_ms=turn.wall_ms,
            metadata_end=metadata_end,
        )
        turn.records.append(_snapshot(key, new, turn))

    def delete(self, key: ShareKey, turn: ShareTurn) -> None:
        if key in self.states:
            turn.records.append(_tombstone(key))

    def summary(self, key: ShareKey) -> ShareState | None:
        """The state without its batches; None if it was never initialized."""
        known = self.states.get(key)
        return None if known is None else known.view(with_batches=False)

    # The leader of the topic partition

    def read(self, key: ShareKey, leader_epoch: int, turn: ShareTurn) -> ShareState:
        """The state, for a new leader: leaders of earlier epochs cannot write from now on."""
        known = self._known(key)
        _check_leader_epoch(key, known, leader_epoch)
        if leader_epoch > known.leader_epoch:
            update = ShareUpdateValue(
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=known.start,
                delivery_complete_count=known.complete_count,
                state_batches=(),
            )
            self._write(key, known, update, turn)
        return known.view()

    def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start: int,
        complete_count: int,
        batches: Sequence[StateBatch],
        turn: ShareTurn,
    ) -> None:
        """Add what a leader has decided. `complete_count` is that of the start offset it is written with."""
        known = self._known(key)
        _check_leader_epoch(key, known, leader_epoch)
        if state_epoch < known.state_epoch:
            _refuse_state_epoch(key, known, state_epoch)
        if state_epoch > known.state_epoch:
            raise InvalidRequest(f"{key} has state epoch {known.state_epoch}: {state_epoch} was never initialized")
        _check_batches(key, batches)
        start, complete_count = max((known.start, known.complete_count), (start, complete_count))
        wanted = list(batches)
        cut_below(wanted, start)
        update = ShareUpdateValue(
            snapshot_epoch=known.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete_count,
            state_batches=_to_stored(wanted),
        )
        self._write(key, known, update, turn)

    def _write(self, key: ShareKey, known: StoredShare, update: ShareUpdateValue, turn: ShareTurn) -> None:
        if known.updates < UPDATES_PER_SNAPSHOT:
            turn.records.append(Entry(ShareUpdateKey(**_names(key)), update))
            return
        whole = _copy(known)
        whole.apply(update)
        turn.records.append(_snapshot(key, whole, turn))

    def _known(self, key: ShareKey) -> StoredShare:
        known = self.states.get(key)
        if known is None:
            raise InvalidRequest(f"the share state of {key} was never initialized")
        return known

    # Upkeep

    def rewrite(self, keys: Iterable[ShareKey], turn: ShareTurn) -> None:
        """Append snapshots of some share partitions, so that the log before can be deleted."""
        for key in keys:
            if key in self.states:
                turn.records.append(_snapshot(key, _copy(self.states[key]), turn))

    def delete_topics(self, topic_ids: Iterable[Id], turn: ShareTurn) -> None:
        """Delete the state of topics that no longer exist."""
        gone = frozenset(topic_ids)
        turn.records += [_tombstone(key) for key in self.states if key.topic_id in gone]


def _check_leader_epoch(key: ShareKey, known: StoredShare, leader_epoch: int) -> None:
    if leader_epoch < known.leader_epoch:
        raise FencedLeaderEpoch(f"{key} has been read in leader epoch {known.leader_epoch}, after {leader_epoch}")


def _refuse_state_epoch(key: ShareKey, known: StoredShare, state_epoch: int) -> NoReturn:
    raise FencedStateEpoch(f"{key} has state epoch {known.state_epoch}, not {state_epoch}")


def _check_batches(key: ShareKey, batches: Sequence[StateBatch]) -> None:
    end = -1
    for one in batches:
        if one.first <= end or one.last < one.first or one.state is DeliveryState.ACQUIRED:
            raise InvalidRequest(f"{key}: batch {one.first} to {one.last} in state {one.state.name} cannot be stored")
        end = one.last


def _copy(known: StoredShare) -> StoredShare:
    """A copy for the next snapshot."""
    return replace(known, batches=list(known.batches), snapshot_epoch=known.snapshot_epoch + 1, updates=0)


def _snapshot(key: ShareKey, state: StoredShare, turn: ShareTurn) -> Entry:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=turn.wall_ms,
        state_batches=_to_stored(state.batches),
        metadata_end=state.metadata_end,
    )
    return Entry(ShareSnapshotKey(**_names(key)), value)


def _from_snapshot(value: ShareSnapshotValue) -> StoredShare:
    return StoredShare(
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start=value.start_offset,
        complete_count=value.delivery_complete_count,
        batches=_from_stored(value.state_batches),
        snapshot_epoch=value.snapshot_epoch,
        created_ms=value.create_timestamp,
        metadata_end=value.metadata_end,
    )


def _tombstone(key: ShareKey) -> Entry:
    return Entry(ShareSnapshotKey(**_names(key)), None)


def _names(key: ShareKey) -> dict[str, Any]:
    return {"group": key.group, "topic_id": key.topic_id, "partition": key.partition}


def _to_stored(batches: Iterable[StateBatch]) -> tuple[records.StateBatch, ...]:
    return tuple(
        records.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=count, not_before=not_before
        )
        for first, last, state, count, not_before in batches
    )


def _from_stored(batches: Iterable[records.StateBatch]) -> list[StateBatch]:
    return [
        StateBatch(one.first_offset, one.last_offset, STATES[one.delivery_state], one.delivery_count, one.not_before)
        for one in batches
    ]
