"""RegisterBroker: a member has started, and says where it is found from now on."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.messages.peers.registered_endpoint import RegisteredEndpoint
from tailrace.wire.messages.peers.registered_feature import RegisteredFeature
from tailrace.wire.schema import Int32, message, wire


@message(api=1011, versions="0-1", flexible="0+")
class RegisterBroker:
    """What the metadata is to say of it. It carries both forms of its endpoints, and sends the one of the version."""

    broker_id: Int32
    directory_id: Id
    incarnation_id: Id
    host: str = wire(until=0, default="", ignorable=True)
    kafka_port: Int32 = wire(until=0, default=0, ignorable=True)
    endpoints: tuple[RegisteredEndpoint, ...] = wire(since=1, default=(), ignorable=True)
    peer_host: str
    peer_port: Int32
    rack: str | None = wire(nullable="0+", default=None)
    features: tuple[RegisteredFeature, ...] = wire(tag=0, default=())


@message(api=1011, versions="0-1", flexible="0+")
class RegisterBrokerAnswer(PeerAnswer):
    """Done, or why not."""
