"""The checks of a hello: each end verifies cluster, broker id, lane and metadata.version of the other.

A broker that wants to join does not know its cluster id yet, or has no broker id in it; it may only open a control lane
and send JoinCluster.
"""

from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import check_level
from tailrace.broker.peers.unreachable import Refused
from tailrace.cluster.features import CLIENT_LANE_LEVEL
from tailrace.model.frozen import frozen
from tailrace.model.ids import NO_BROKER, BrokerId, Id
from tailrace.raft.voters import Voter
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer


@frozen
class Greeted:
    """The peer of an accepted connection, as its hello says."""

    voter: Voter
    lane: LaneKind
    joins: bool  # not a member of the cluster yet
    hello: PeerHello

    @property
    def caller(self) -> BrokerId:
        return NO_BROKER if self.joins else self.voter.broker


def accept(hello: PeerHello, me: Voter, cluster_id: str, level: int) -> Greeted:
    """The peer that sent this hello; Refused if a check fails. `level`: the metadata.version in force here."""
    joins = hello.cluster_id == "" or hello.broker_id < 0
    if hello.cluster_id not in ("", cluster_id):
        raise Refused(Error.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not {hello.cluster_id}")
    if hello.to not in (NO_BROKER, me.broker):
        raise Refused(Error.BROKER_NOT_AVAILABLE, f"this is broker {me.broker}, not {hello.to}")
    if hello.broker_id == me.broker:
        raise Refused(Error.DUPLICATE_BROKER_REGISTRATION, f"broker id {me.broker} is already in use by this broker")
    if hello.lane not in LaneKind.__members__.values():
        raise Refused(Error.INVALID_REQUEST, f"unknown lane {hello.lane}")
    if joins and hello.lane != LaneKind.CONTROL:
        raise Refused(Error.BROKER_ID_NOT_REGISTERED, "a broker that has not joined yet may only ask to join")
    if hello.lane == LaneKind.CLIENT and level < CLIENT_LANE_LEVEL:
        why = f"the client lane needs metadata.version {CLIENT_LANE_LEVEL}, {level} is in force"
        raise Refused(Error.UNSUPPORTED_VERSION, why)
    check_level(hello, level)
    voter = Voter(BrokerId(hello.broker_id), Id(hello.directory_id))
    return Greeted(voter=voter, lane=LaneKind(hello.lane), joins=joins, hello=hello)


def check_answer(answer: PeerHelloAnswer, hello: PeerHello, level: int | None) -> None:
    """Refused unless the intended broker answered. `level`: the metadata.version in force; None if not known here."""
    if answer.error_code:
        why = answer.error_message or "no reason given"
        raise Refused(_error(answer.error_code), why, by_peer=True)
    if hello.to not in (NO_BROKER, answer.broker_id):
        raise Refused(
            Error.BROKER_NOT_AVAILABLE, f"broker {answer.broker_id} answered at the address of broker {hello.to}"
        )
    if hello.cluster_id not in ("", answer.cluster_id):
        raise Refused(
            Error.INCONSISTENT_CLUSTER_ID,
            f"a broker of cluster {answer.cluster_id} answered, expected cluster {hello.cluster_id}",
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
