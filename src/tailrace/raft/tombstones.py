"""The tombstone horizon of a compacted partition, as its leader decides about it (ADR 0025).

Replicas compact on their own. A tombstone may go from a log only when no replica can have the value that it deletes
and miss the tombstone; the same holds for a transaction's records and its marker. So each log has a *horizon* H, below
which its tombstones and markers may go, and the leader keeps three rules, by what it knows of the replicas that fetch:

- H is raised to the log end of the replica that is furthest behind, of all that were seen within `away_s`
  (`delete.retention.ms`). One that was not heard yet is seen since the leader's election.
- A replica whose log ends below H must *begin anew*, with an empty log: the leader may lack tombstones that it needs.
- Unless it has a *grant*: it began with an empty log in this epoch, so all that it has came from this leader. A grant
  holds the leader's removals back to that replica's log end, until it falls back or was away for longer than `away_s`.

A replica that begins anew does not vote until it has caught up. So it waits while fewer than a majority of the others
are known to have everything below H: one that is damaged, say, may be fetching its log again, too.

The shell checks the second rule when it answers a fetch, not when the fetch arrives: H may have risen meanwhile.
"""

from enum import Enum

from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import Voter


def raised(leadership: Leadership, covered: int, high_watermark: int, now: float, away_s: float) -> int:
    """How far H may be raised; `covered`: the leader's own passes had covered everything below `away_s` ago."""
    ends = [tracker.end for tracker in leadership.trackers.values() if now - tracker.seen <= away_s]
    return min(covered, high_watermark, *ends) if ends else min(covered, high_watermark)


class Serving(Enum):
    """What a replica gets that fetches."""

    RECORDS = "records"
    BEGIN_ANEW = "begin anew"
    WAIT = "nothing yet: it must begin anew, but may not do so now"


def serving(leadership: Leadership, replica: Voter, end: int, horizon: int, own_durable: int) -> Serving:
    """What a replica with this log end gets."""
    tracker = leadership.trackers.get(replica)
    if tracker is not None and tracker.is_empty and tracker.end == end:
        tracker.granted = True  # its grant may have ended while it waited; it need not begin anew once more
    if end >= horizon or (tracker is not None and tracker.granted):
        return Serving.RECORDS
    does_not_count = tracker is not None and not tracker.counts
    if does_not_count or leadership.durable_without(replica, own_durable) >= horizon:
        return Serving.BEGIN_ANEW
    return Serving.WAIT


def removable(leadership: Leadership, horizon: int, now: float, away_s: float) -> int:
    """Tombstones and markers below may be removed now. Grants of replicas that are away for long end with this."""
    bound = horizon
    for tracker in leadership.trackers.values():
        if tracker.granted and tracker.end < horizon:
            if now - tracker.seen > away_s:
                tracker.granted = False
            else:
                bound = min(bound, tracker.end)
    return bound
