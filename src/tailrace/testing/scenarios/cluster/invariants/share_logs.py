"""What the logs say about share groups at the end of a run, read directly from a disk.

- The log of share states, replayed record by record: epochs and the start never go back, no update is of a leader that
  was fenced before, and the result is the state that the share coordinator has.
- Each record that was given up with a dead letter topic has a dead letter with its coordinates and content, and no
  record that was accepted has one.
- Every record is accounted for: a member accepted or rejected it, or its delivery limit was reached. Records of aborted
  transactions are not delivered to groups that read committed.
"""

from collections.abc import Iterator, Mapping, Sequence

from tailrace.broker.partitions.partition import Partition
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.model.ids import Id, TopicPartition
from tailrace.queues.records import Entry, ShareSnapshotValue, ShareUpdateValue, decode_entry
from tailrace.queues.share_partition import Acknowledge
from tailrace.queues.share_states import StoredShare, StoredShares
from tailrace.queues.state import DeliveryState, ShareKey
from tailrace.records.control import Marker, read_control
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observer import partitions_of
from tailrace.testing.scenarios.cluster.invariants.share_history import RecordHistory, RecordPosition, ShareHistory
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation.file_content import FileContent

LETTER_PREFIX = "__dlq.errors."
STATE_PARTITION = "__share_group_state-0"


class LogRecords:
    """The data records of one partition, and which of them belong to aborted transactions."""

    def __init__(self, server: Server, partition: Partition) -> None:
        self.place = partition.key
        self.records: dict[int, Record] = {}
        self.aborted: dict[int, None] = {}
        self._read(server, partition)

    def _read(self, server: Server, partition: Partition) -> None:
        open_offsets: dict[int, list[int]] = {}  # of transactions, by producer id
        for segment in list(partition.log.segments):
            content = server.machine.storage.tree.find(segment.path_of(SEGMENT_SUFFIX))
            assert isinstance(content, FileContent)
            for batch, header in batches(bytes(content.visible[: segment.size])):
                if header.is_control:
                    control = read_control(batch)
                    if isinstance(control, Marker):
                        ended = open_offsets.pop(header.producer_id, [])
                        self.aborted.update(dict.fromkeys([] if control.committed else ended))
                    continue
                for record in open_batch(batch):
                    self.records[record.offset] = record
                    if header.is_transactional:
                        open_offsets.setdefault(header.producer_id, []).append(record.offset)


def log_of(servers: Sequence[Server], name: str) -> tuple[Server, Partition]:
    """The partition of this name on its leader."""
    return next((server, one) for server in servers for one in partitions_of(server) if one.name == name and one.leads)


# The log of share states


def check_state_log(servers: Sequence[Server]) -> None:
    server, partition = log_of(servers, STATE_PARTITION)
    replayed = StoredShares()
    for offset, record in LogRecords(server, partition).records.items():
        entry = decode_entry(record)
        key = ShareKey(entry.key.group, Id(entry.key.topic_id), entry.key.partition)
        before = replayed.states.get(key)
        epochs = None if before is None else (before.state_epoch, before.leader_epoch)
        start = None if before is None else before.start
        replayed.replay(entry)
        _check_entry(f"{key}, offset {offset} of {STATE_PARTITION}", epochs, start, entry, replayed.states.get(key))
    assert server.node is not None
    (coordinator,) = server.node.coordinators.shares.local_coordinators
    kept = coordinator.machine.states if coordinator.machine is not None else {}
    if {key: one.view() for key, one in kept.items()} != {key: one.view() for key, one in replayed.states.items()}:
        raise InvariantViolated(Invariant.SHARE_STATE, f"the coordinator has {kept}, its log {replayed.states}")


def _check_entry(
    where: str, epochs: tuple[int, int] | None, start: int | None, entry: Entry, after: StoredShare | None
) -> None:
    value = entry.value
    if epochs is None or start is None or after is None:
        return
    if isinstance(value, ShareUpdateValue) and value.leader_epoch < epochs[1]:
        raise InvariantViolated(
            Invariant.SHARE_STATE, f"{where}: written in leader epoch {value.leader_epoch} after {epochs[1]}"
        )
    is_altered = isinstance(value, ShareSnapshotValue) and value.state_epoch > epochs[0]
    if (after.state_epoch, after.leader_epoch) < epochs or (after.start < start and not is_altered):
        raise InvariantViolated(Invariant.SHARE_STATE, f"{where}: {after} follows epochs {epochs}, start {start}")
    end = after.start - 1
    for batch in after.batches:
        if batch.first <= end or batch.last < batch.first or batch.state is DeliveryState.ACQUIRED:
            raise InvariantViolated(Invariant.SHARE_STATE, f"{where}: {batch} follows {end}: {after}")
        end = batch.last


# Dead letters

Letters = Mapping[tuple[str, TopicPartition, int], Record]


def dead_letters(servers: Sequence[Server], topic: str, ids: Mapping[str, Id]) -> Letters:
    """All dead letters by group, partition and offset of the record."""
    found: dict[tuple[str, TopicPartition, int], Record] = {}
    for record in LogRecords(*log_of(servers, f"{topic}-0")).records.values():
        said = {name: value or b"" for name, value in record.headers}
        source = said[f"{LETTER_PREFIX}topic"].decode()
        place = TopicPartition(ids[source], int(said[f"{LETTER_PREFIX}partition"]))
        found[said[f"{LETTER_PREFIX}group"].decode(), place, int(said[f"{LETTER_PREFIX}offset"])] = record
    return found


def check_letters(history: ShareHistory, log: LogRecords, letters: Letters) -> None:
    """Records that were rejected have a letter; all letters have the content of their records."""
    of_group = {
        offset: one for (group, place, offset), one in letters.items() if (group, place) == (history.group, log.place)
    }
    for record, known in _of_log(history, log):
        is_rejected = known.finished_at is not None and list(known.final) == [Acknowledge.REJECT]
        if is_rejected and record.offset not in of_group:
            raise InvariantViolated(Invariant.DEAD_LETTERS, f"{history.group}: {record} was rejected and has none")
        if known.accepted and record.offset in of_group:
            raise InvariantViolated(Invariant.DEAD_LETTERS, f"{history.group}: {record} was accepted and has one")
    for offset, letter in of_group.items():
        original = log.records.get(offset)
        if original is None or (original.key, original.value, original.timestamp) != (
            letter.key,
            letter.value,
            letter.timestamp,
        ):
            raise InvariantViolated(
                Invariant.DEAD_LETTERS, f"{history.group}: the letter of {log.place}@{offset} is not {original}"
            )


# Every record


def check_accounted(history: ShareHistory, log: LogRecords, letters: Letters, *, committed: bool) -> None:
    """All records of a partition are finished by now; each must have been finished by a member, or by the limit."""
    unanswered = history.unanswered.get(log.place, 0)
    for offset in log.records:
        record = RecordPosition(log.place, offset)
        known = history.of(record)
        if committed and offset in log.aborted:
            if known.deliveries:
                raise InvariantViolated(
                    Invariant.TRANSACTIONS, f"{history.group}: {record} is of an aborted transaction, and was delivered"
                )
            continue
        if known.final or (history.group, log.place, offset) in letters:
            continue
        if history.rules.dead_letters or len(known.deliveries) + unanswered < history.rules.delivery_limit:
            raise InvariantViolated(
                Invariant.DRAINED,
                f"{history.group}: {record} is finished, but was delivered only {len(known.deliveries)} times, "
                f"and nobody accepted or rejected it",
            )


def _of_log(history: ShareHistory, log: LogRecords) -> Iterator[tuple[RecordPosition, RecordHistory]]:
    return ((record, known) for record, known in history if record.place == log.place)
