"""PeerHello: the first request on a connection between brokers: who connects, to which broker, for which lane.

It has one version, because the levels of metadata.version that both ends support are told in it; new fields are tagged.
"""

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
    first_level: Int16 = wire(tag=0, default=1)  # of metadata.version that it supports; 0.1.0 says nothing
    last_level: Int16 = wire(tag=1, default=1)


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
    first_level: Int16 = wire(tag=0, default=1)  # as in the hello
    last_level: Int16 = wire(tag=1, default=1)
    release: str = wire(tag=2, default="")
