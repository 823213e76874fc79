"""PeerHello: the first thing said on a connection between brokers: who speaks, whom it means, which lane."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@message(api=1000, versions="0-0", flexible="0+")
class PeerHello:
    """Who speaks."""

    cluster_id: str  # empty: not known yet, as only a joiner may say
    broker_id: Int32  # -1: a joiner that has none
    directory_id: Id
    to: Int32 = -1  # the broker that is meant; -1: whoever you are
    lane: Int8 = 0
    release: str = ""  # for people


@struct
class Neighbour:
    """Where another broker is found, as far as the one that answers knows."""

    broker_id: Int32
    host: str
    port: Int32


@message(api=1000, versions="0-0", flexible="0+")
class PeerHelloAnswer:
    """Who was reached, or why it does not talk."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    cluster_id: str = ""
    broker_id: Int32 = -1
    directory_id: Id = NO_ID
    neighbours: tuple[Neighbour, ...] = ()
