"""The outcome lines of the transcripts of share groups: transitions, records and answers."""

from tailrace.groups.consumer.partition_sets import from_stored
from tailrace.groups.consumer.requests import HeartbeatAnswer
from tailrace.groups.records import Entry
from tailrace.groups.share import records
from tailrace.groups.share.share_state import PartitionsWithState
from tailrace.groups.share.states import ShareMove
from tests.unit.groups.consumer.transcript_lines import partition_names


def answer_line(client: str, answer: HeartbeatAnswer, usual_ms: int) -> str:
    assigned = "" if answer.assigned is None else f", assigned {partition_names(answer.assigned)}"
    soon = f", next heartbeat in {answer.interval_ms} ms" if 0 < answer.interval_ms < usual_ms else ""
    return f"{client} is answered: epoch {answer.epoch}{assigned}{soon}"


def move_line(move: ShareMove) -> str:
    return f"{move.state.value} → {move.to.value}: {move.cause.value}"


def state_line(state: PartitionsWithState) -> str:
    starts = {one: "" if start < 0 else f" at {start}" for one, start in state.initializing.items()}
    parts = (
        ("initializing", ", ".join(f"{partition_names([one])}{starts[one]}" for one in sorted(starts))),
        ("initialized", " ".join(partition_names([one]) for one in state.readable)),
        ("deleting", " ".join(partition_names([one]) for one in state.to_delete)),
    )
    return "; ".join(f"{what} {which}" for what, which in parts if which) or "nothing"


def record_line(entry: Entry) -> str:
    return f"tombstone: {_tombstone(entry)}" if entry.value is None else f"record: {_record(entry)}"


def _tombstone(entry: Entry) -> str:
    match entry.key:
        case records.ShareGroupMetadataKey():
            return "share group"
        case records.ShareGroupMemberMetadataKey() as key:
            return f"member {key.member_id}"
        case records.ShareGroupTargetAssignmentMetadataKey():
            return "assignment epoch"
        case records.ShareGroupTargetAssignmentMemberKey() as key:
            return f"target of {key.member_id}"
        case records.ShareGroupCurrentMemberAssignmentKey() as key:
            return f"current assignment of {key.member_id}"
        case records.ShareGroupStatePartitionMetadataKey():
            return "partitions with state"
        case _:
            raise ValueError(entry)


def _record(entry: Entry) -> str:
    match entry:
        case Entry(_, records.ShareGroupMetadataValue() as value):
            return f"group epoch {value.epoch}"
        case Entry(records.ShareGroupMemberMetadataKey() as key, records.ShareGroupMemberMetadataValue() as value):
            return f"{key.member_id} subscribes to {' '.join(value.subscribed_topic_names) or 'nothing'}"
        case Entry(_, records.ShareGroupTargetAssignmentMetadataValue() as value):
            return f"assignment epoch {value.assignment_epoch}"
        case Entry(
            records.ShareGroupTargetAssignmentMemberKey() as key,
            records.ShareGroupTargetAssignmentMemberValue() as value,
        ):
            return f"target of {key.member_id} is {partition_names(from_stored(value.topic_partitions))}"
        case Entry(
            records.ShareGroupCurrentMemberAssignmentKey() as key,
            records.ShareGroupCurrentMemberAssignmentValue() as value,
        ):
            assigned = partition_names(from_stored(value.assigned_partitions))
            return f"{key.member_id} reads {assigned} in epoch {value.member_epoch}"
        case Entry(_, records.ShareGroupStatePartitionMetadataValue() as value):
            return f"partitions: {state_line(PartitionsWithState.of(value))}"
        case _:
            raise ValueError(entry)
