"""What a group did, in the words of the transcripts."""

from tailrace.groups.records import Entry, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tailrace.groups.requests import Answer, Joined, Synced
from tailrace.groups.states import Move
from tailrace.model.faults import Fault
from tailrace.model.proposal import InTransaction
from tailrace.wire.faults import error_of


def moved(move: Move) -> str:
    return f"{move.state.value} → {move.to.value}: {move.cause.value}"


def answered(who: str, answer: Answer) -> str:
    match answer:
        case Joined():
            rest = f", leads {' '.join(one.member_id for one in answer.members)}" if answer.members else ""
            rest += ", with nothing to share out" if answer.skip_assignment else ""
            return f"{who} has joined as {answer.member_id}: generation {answer.generation}, {answer.protocol}{rest}"
        case Synced():
            return f"{who} gets {answer.assignment.decode() or 'nothing'}"
        case Fault():
            return f"{who} is refused: {error_of(answer).name}"


def written(entry: Entry | InTransaction) -> str:
    match entry:
        case InTransaction(producer_id, epoch, Entry() as inner):
            return f"{written(inner)}, if the transaction of {producer_id}/{epoch} is committed"
        case Entry(OffsetCommitKey() as key, OffsetCommitValue() as value):
            return f"written: {key.topic}-{key.partition} is read up to {value.offset}"
        case Entry(OffsetCommitKey() as key, _):
            return f"written: {key.topic}-{key.partition} is forgotten"
        case Entry(_, GroupMetadataValue() as value):
            members = ", ".join(f"{one.member_id}={one.assignment.decode() or '-'}" for one in value.members)
            return f"written: generation {value.generation}, {value.protocol}: {members or 'nobody'}"
        case _:
            return "written: the group is gone"
