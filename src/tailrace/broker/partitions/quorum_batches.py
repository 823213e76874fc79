"""The control batches of a quorum: leader change, and voters."""

from collections.abc import Sequence

from tailrace.raft.replica import Replica, Voter
from tailrace.records.control import leader_change_batch, voters_batch


def leader_change_of(replica: Replica, end: int, now_ms: int) -> bytearray:
    """The leader-change batch, the first one of a new leader, at the end of its log."""
    return leader_change_batch(
        leader=replica.me.broker,
        voters=[voter.broker for voter in replica.voters],
        granting=[replica.me.broker],
        base_offset=end,
        leader_epoch=replica.epoch,
        timestamp=now_ms,
    )


def voters_of(replica: Replica, voters: Sequence[Voter], end: int, now_ms: int) -> bytearray:
    return voters_batch(
        voters=[(voter.broker, voter.directory) for voter in voters],
        base_offset=end,
        leader_epoch=replica.epoch,
        timestamp=now_ms,
    )
