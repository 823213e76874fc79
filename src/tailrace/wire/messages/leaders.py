"""Hints at the current leader in Produce and Fetch responses (KIP-951), which save clients a Metadata request."""

from tailrace.wire.schema import Int32, struct, wire


@struct
class LeaderIdAndEpoch:
    """The leader of a partition as this broker knows it; -1 if it knows none."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class NodeEndpoint:
    """The address of a leader named in the response."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = wire(nullable="0+", default=None)
