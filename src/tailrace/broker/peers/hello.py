"""Who may talk to whom: the checks of both ends on the first words of a connection.

A joiner does not know its cluster yet, or has no id in it; it speaks on a control lane, asks to join, and no more.
"""

from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import check_level
from tailrace.broker.peers.unreachable import Refused
from tailrace.model.frozen import frozen
from tailrace.model.ids import NOBODY, BrokerId, Id
from tailrace.raft.voters import Voter
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer


@frozen
class Greeted:
    """Who is at the other end of an accepted connection."""

    voter: Voter
    lane: LaneKind
    joins: bool
    hello: PeerHello  # what it told of itself

    @property
    def caller(self) -> BrokerId:
        return NOBODY if self.joins else self.voter.broker


def accept(hello: PeerHello, me: Voter, cluster_id: str, level: int) -> Greeted:
    """Who it is; Refused if we do not talk to it. `level` of metadata.version is in force, as far as we know."""
    joins = hello.cluster_id == "" or hello.broker_id < 0
    if hello.cluster_id not in ("", cluster_id):
        raise Refused(Error.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not {hello.cluster_id}")
    if hello.to not in (NOBODY, me.broker):
        raise Refused(Error.BROKER_NOT_AVAILABLE, f"this is broker {me.broker}, not {hello.to}")
    if hello.broker_id == me.broker:
        raise Refused(Error.DUPLICATE_BROKER_REGISTRATION, f"this is broker {me.broker}, and there is only one")
    if hello.lane not in LaneKind.__members__.values():
        raise Refused(Error.INVALID_REQUEST, f"there is no lane {hello.lane}")
    if joins and hello.lane != LaneKind.CONTROL:
        raise Refused(Error.BROKER_ID_NOT_REGISTERED, "a broker that is no member yet may only ask to join")
    check_level(hello, level)
    voter = Voter(BrokerId(hello.broker_id), Id(hello.directory_id))
    return Greeted(voter=voter, lane=LaneKind(hello.lane), joins=joins, hello=hello)


def check_answer(answer: PeerHelloAnswer, hello: PeerHello, level: int | None) -> None:
    """Whether we reached whom we meant; Refused if not. `level` is None where we do not know which one is in force."""
    if answer.error_code:
        why = answer.error_message or "it does not say why"
        raise Refused(_error(answer.error_code), why, by_peer=True)
    if hello.to not in (NOBODY, answer.broker_id):
        raise Refused(Error.BROKER_NOT_AVAILABLE, f"broker {answer.broker_id} answers where {hello.to} was meant")
    if hello.cluster_id not in ("", answer.cluster_id):
        raise Refused(
            Error.INCONSISTENT_CLUSTER_ID, f"cluster {answer.cluster_id} answers where {hello.cluster_id} was meant"
        )
    if level is not None:
        check_level(answer, level)


def refusal(refused: Refused, me: Voter, cluster_id: str) -> PeerHelloAnswer:
    return PeerHelloAnswer(
        error_code=refused.error,
        error_message=refused.why,
        cluster_id=cluster_id,
        broker_id=me.broker,
        directory_id=me.directory,
    )


def _error(code: int) -> Error:
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
