"""JoinCluster: a broker that is no member yet asks the controller to make it one."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.messages.peers.registered_feature import RegisteredFeature
from tailrace.wire.schema import Int32, message, struct, wire


@message(api=1010, versions="0-0", flexible="0+")
class JoinCluster:
    """Who wants to join, and where its peers will find it."""

    directory_id: Id
    broker_id: Int32 = -1  # the id it wants; -1: the next free one
    incarnation_id: Id
    peer_host: str
    peer_port: Int32
    rack: str | None = wire(nullable="0+", default=None)
    features: tuple[RegisteredFeature, ...] = wire(tag=0, default=())


@struct
class MetadataVoter:
    """A broker that votes on the metadata, and where it is found."""

    broker_id: Int32
    directory_id: Id
    peer_host: str
    peer_port: Int32


@message(api=1010, versions="0-0", flexible="0+")
class JoinClusterAnswer(PeerAnswer):
    """The id it got, and whom to follow."""

    broker_id: Int32 = -1
    cluster_id: str = ""
    voters: tuple[MetadataVoter, ...] = ()
