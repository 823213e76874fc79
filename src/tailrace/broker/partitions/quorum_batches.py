"""The batches that a quorum writes of itself: who leads it, and who votes in it."""

from collections.abc import Sequence

from tailrace.raft.replica import Replica, Voter
from tailrace.records.control import leader_change_batch, voters_batch


def of_leader(replica: Replica, end: int, now_ms: int) -> bytearray:
    """The first batch of a leader, at the end of its log."""
    return leader_change_batch(
        leader=replica.me.broker,
        voters=[voter.broker for voter in replica.voters],
        granting=[replica.me.broker],
        base_offset=end,
        leader_epoch=replica.epoch,
        timestamp=now_ms,
    )


def of_voters(replica: Replica, voters: Sequence[Voter], end: int, now_ms: int) -> bytearray:
    return voters_batch(
        voters=[(voter.broker, voter.directory) for voter in voters],
        base_offset=end,
        leader_epoch=replica.epoch,
        timestamp=now_ms,
    )
