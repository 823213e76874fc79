"""Hints about leaders that Produce and Fetch carry (KIP-951), so that clients need no Metadata to go on."""

from tailrace.wire.schema import Int32, struct, wire


@struct
class LeaderIdAndEpoch:
    """Who leads a partition, as far as this broker knows; -1 when it does not."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class NodeEndpoint:
    """Where to reach a leader that was named."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = wire(nullable="0+", default=None)
