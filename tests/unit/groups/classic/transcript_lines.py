"""The outcome lines of the transcripts of classic groups: transitions, records and answers."""

from tailrace.groups.classic.states import Move
from tailrace.groups.records import Entry, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tailrace.groups.requests import Answer, JoinAnswer, SyncAnswer
from tailrace.model.faults import Fault
from tailrace.model.proposal import InTransaction
from tailrace.wire.faults import error_of


def transition_line(move: Move) -> str:
    return f"{move.state.value} → {move.to.value}: {move.cause.value}"


def answer_line(client: str, answer: Answer) -> str:
    match answer:
        case JoinAnswer():
            rest = f", leads {' '.join(one.member_id for one in answer.members)}" if answer.members else ""
            rest += ", skips the assignment" if answer.skip_assignment else ""
            return f"{client} has joined as {answer.member_id}: generation {answer.generation}, {answer.protocol}{rest}"
        case SyncAnswer():
            return f"{client} is assigned {answer.assignment.decode() or 'nothing'}"
        case Fault():
            return f"{client} is refused: {error_of(answer).name}"


def record_line(entry: Entry | InTransaction) -> str:
    match entry:
        case InTransaction(producer_id, epoch, Entry() as inner):
            return f"{record_line(inner)}, if the transaction of {producer_id}/{epoch} is committed"
        case Entry(OffsetCommitKey() as key, OffsetCommitValue() as value):
            return f"record: offset {value.offset} of {key.topic}-{key.partition}"
        case Entry(OffsetCommitKey() as key, _):
            return f"tombstone: offset of {key.topic}-{key.partition}"
        case Entry(_, GroupMetadataValue() as value):
            members = ", ".join(f"{one.member_id}={one.assignment.decode() or '-'}" for one in value.members)
            return f"record: generation {value.generation}, {value.protocol}: {members or 'no members'}"
        case _:
            return "tombstone: group"
