"""The outcome lines of the transcripts of consumer groups: steps of members, records and answers."""

from collections.abc import Iterable

from tailrace.groups.consumer import records
from tailrace.groups.consumer.partition_sets import from_stored
from tailrace.groups.consumer.requests import HeartbeatAnswer
from tailrace.groups.consumer.states import MemberMove
from tailrace.groups.consumer_protocol import ConsumerProtocolAssignment
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue
from tailrace.model.faults import Fault
from tailrace.model.ids import TopicPartition
from tailrace.wire.compile import decode
from tailrace.wire.faults import error_of
from tests.unit.groups.classic import transcript_lines as classic


def partition_names(some: Iterable[TopicPartition]) -> str:
    return " ".join(f"{one.topic_id.decode().strip()}{one.partition}" for one in some) or "nothing"


def answer_line(client: str, answer: HeartbeatAnswer) -> str:
    assigned = "" if answer.assigned is None else f", assigned {partition_names(answer.assigned)}"
    return f"{client} is answered: epoch {answer.epoch}{assigned}"


def refusal_line(client: str, fault: Fault) -> str:
    return f"{client} is refused: {error_of(fault).name}"


def step_line(member: str, move: MemberMove) -> str:
    return f"{member}, {move.state.value} → {move.to.value}: {move.cause.value}"


def record_line(entry: Entry) -> str:
    return f"tombstone: {_tombstone(entry)}" if entry.value is None else f"record: {_record(entry)}"


def _tombstone(entry: Entry) -> str:
    match entry.key:
        case records.ConsumerGroupMetadataKey():
            return "consumer group"
        case GroupMetadataKey():
            return "classic group"
        case records.ConsumerGroupMemberMetadataKey() as key:
            return f"member {key.member_id}"
        case records.ConsumerGroupTargetAssignmentMetadataKey():
            return "assignment epoch"
        case records.ConsumerGroupTargetAssignmentMemberKey() as key:
            return f"target of {key.member_id}"
        case records.ConsumerGroupCurrentMemberAssignmentKey() as key:
            return f"current assignment of {key.member_id}"
        case records.ConsumerGroupRegularExpressionKey() as key:
            return f"regular expression {key.regular_expression}"
        case _:
            return classic.record_line(entry).removeprefix("tombstone: ")


def _record(entry: Entry) -> str:
    match entry:
        case Entry(_, records.ConsumerGroupMetadataValue() as value):
            return f"group epoch {value.epoch}"
        case Entry(
            records.ConsumerGroupMemberMetadataKey() as key, records.ConsumerGroupMemberMetadataValue() as value
        ):
            names = " ".join(value.subscribed_topic_names)
            return f"{key.member_id} subscribes to {names or value.subscribed_topic_regex or 'nothing'}"
        case Entry(_, records.ConsumerGroupTargetAssignmentMetadataValue() as value):
            return f"assignment epoch {value.assignment_epoch}"
        case Entry(
            records.ConsumerGroupTargetAssignmentMemberKey() as key,
            records.ConsumerGroupTargetAssignmentMemberValue() as value,
        ):
            return f"target of {key.member_id} is {partition_names(from_stored(value.topic_partitions))}"
        case Entry(
            records.ConsumerGroupCurrentMemberAssignmentKey() as key,
            records.ConsumerGroupCurrentMemberAssignmentValue() as value,
        ):
            assigned = partition_names(from_stored(value.assigned_partitions))
            revoking = partition_names(from_stored(value.partitions_pending_revocation))
            rest = f", revoking {revoking}" if value.partitions_pending_revocation else ""
            return f"{key.member_id} owns {assigned} in epoch {value.member_epoch}{rest}"
        case Entry(
            records.ConsumerGroupRegularExpressionKey() as key, records.ConsumerGroupRegularExpressionValue() as value
        ):
            return f"regular expression {key.regular_expression} matches {' '.join(value.topics) or 'nothing'}"
        case Entry(_, GroupMetadataValue() as value):
            members = ", ".join(f"{one.member_id}={_classic_assignment(one.assignment)}" for one in value.members)
            return f"generation {value.generation}, {value.protocol}: {members or 'no members'}"
        case _:
            return classic.record_line(entry).removeprefix("record: ")


def _classic_assignment(data: bytes) -> str:
    found, _ = decode(ConsumerProtocolAssignment, 3, data, 2)
    return ",".join(f"{one.topic}{number}" for one in found.assigned_partitions for number in one.partitions) or "-"
