"""What a consumer group did, in the words of its transcripts."""

from collections.abc import Iterable

from tailrace.groups.consumer import records as kept
from tailrace.groups.consumer.embedded import EmbeddedAssignment
from tailrace.groups.consumer.requests import HeartbeatAnswer
from tailrace.groups.consumer.shares import restored
from tailrace.groups.consumer.states import Taken
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue
from tailrace.model.faults import Fault
from tailrace.model.ids import TopicPartition
from tailrace.wire.compile import decode
from tailrace.wire.faults import error_of
from tests.unit.groups import telling


def partitions(some: Iterable[TopicPartition]) -> str:
    return " ".join(f"{one.topic_id.decode().strip()}{one.partition}" for one in some) or "nothing"


def told(who: str, answer: HeartbeatAnswer) -> str:
    has = "" if answer.assigned is None else f", it has {partitions(answer.assigned)}"
    return f"{who} is told: epoch {answer.epoch}{has}"


def refused(who: str, fault: Fault) -> str:
    return f"{who} is refused: {error_of(fault).name}"


def stepped(member: str, taken: Taken) -> str:
    return f"{member}, {taken.state.value} → {taken.to.value}: {taken.step.value}"


def written(entry: Entry) -> str:
    return f"written: {_what(entry)}"


def _what(entry: Entry) -> str:
    match entry:
        case Entry(_, kept.ConsumerGroupMetadataValue() as value):
            return f"epoch {value.epoch}"
        case Entry(kept.ConsumerGroupMetadataKey(), None):
            return "the group is gone"
        case Entry(GroupMetadataKey(), None):
            return "the classic group is gone"
        case Entry(kept.ConsumerGroupMemberMetadataKey() as key, kept.ConsumerGroupMemberMetadataValue() as value):
            names = " ".join(value.subscribed_topic_names)
            return f"{key.member_id} reads {names or value.subscribed_topic_regex or 'nothing'}"
        case Entry(kept.ConsumerGroupMemberMetadataKey() as key, None):
            return f"{key.member_id} is gone"
        case Entry(_, kept.ConsumerGroupTargetAssignmentMetadataValue() as value):
            return f"these are the targets of epoch {value.assignment_epoch}"
        case Entry(kept.ConsumerGroupTargetAssignmentMetadataKey(), None):
            return "there are no targets"
        case Entry(kept.ConsumerGroupRegularExpressionKey() as key, value):
            found = value.topics if isinstance(value, kept.ConsumerGroupRegularExpressionValue) else None
            return f"{key.regular_expression} matches {'no more' if found is None else ' '.join(found) or 'nothing'}"
        case _:
            return _of_a_member(entry)


def _embedded(data: bytes) -> str:
    found, _ = decode(EmbeddedAssignment, 3, data, 2)
    return ",".join(f"{one.topic}{number}" for one in found.assigned_partitions for number in one.partitions) or "-"


def _of_a_member(entry: Entry) -> str:
    match entry:
        case Entry(kept.ConsumerGroupTargetAssignmentMemberKey() as key, None):
            return f"{key.member_id} shall have nothing any more"
        case Entry(
            kept.ConsumerGroupTargetAssignmentMemberKey() as key, kept.ConsumerGroupTargetAssignmentMemberValue() as to
        ):
            return f"{key.member_id} shall have {partitions(restored(to.topic_partitions))}"
        case Entry(kept.ConsumerGroupCurrentMemberAssignmentKey() as key, None):
            return f"{key.member_id} has nothing any more"
        case Entry(
            kept.ConsumerGroupCurrentMemberAssignmentKey() as key,
            kept.ConsumerGroupCurrentMemberAssignmentValue() as now,
        ):
            gives_up = partitions(restored(now.partitions_pending_revocation))
            rest = f", gives up {gives_up}" if now.partitions_pending_revocation else ""
            has = partitions(restored(now.assigned_partitions))
            return f"{key.member_id} has {has} in epoch {now.member_epoch}{rest}"
        case Entry(_, GroupMetadataValue() as value):
            members = ", ".join(f"{one.member_id}={_embedded(one.assignment)}" for one in value.members)
            return f"generation {value.generation}, {value.protocol}: {members or 'nobody'}"
        case _:
            return telling.written(entry).removeprefix("written: ")
