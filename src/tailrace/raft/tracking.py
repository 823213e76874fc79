"""What a leader knows about each replica that fetches from it.

- *Commit*: the high watermark is the offset that a majority of voters, the leader included, has durable. It advances
  only over entries of the leader's own epoch (Raft §5.4.2, figure 8). A replica's offset counts once its log was found,
  in this epoch, to be a prefix of the leader's.
- *Check-quorum*: a leader that a majority has not fetched from for a while may have been replaced without knowing it.
- *In sync* (ISR): a voter is in sync if it was at the leader's log end within the last `replica.lag.time.max.ms`.
"""

from dataclasses import dataclass
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.raft.messages import Fetched, Pulse, Synced
from tailrace.raft.voters import Voter, Voters, majority

FOREVER: Final = float("inf")


@dataclass(slots=True)
class Tracker:
    """One replica, as known from its fetches in this epoch."""

    fetched: float  # when it last fetched; before its first fetch, when the leader was elected
    end: int = -1  # its log end; its log is a prefix of the leader's. -1: it has not fetched in this epoch
    last_epoch: int = -1  # the epoch of its last entry
    durable: int = -1  # how far its log is on disk; -1: it does not count
    caught_up: float = -FOREVER  # when it last had the leader's whole log of that moment
    leader_end: int = 0  # the leader's log end when it last fetched
    pulse: Pulse | None = None  # of its fetch session: a fetch without changes repeats the last one
    # It began with an empty log in this epoch and never fell back: all it has came from this leader (`tombstones`).
    granted: bool = False
    early: Synced | None = None  # about a log that it has not fetched with yet: the message overtook the fetch

    @property
    def counts(self) -> bool:
        """Whether its log may count; assumed until its first fetch."""
        return self.durable >= 0 or self.end < 0

    @property
    def is_empty(self) -> bool:
        """Whether its log has no entries."""
        return self.end >= 0 and self.last_epoch < 0

    @property
    def seen(self) -> float:
        return self.fetched if self.pulse is None else max(self.fetched, self.pulse.at)

    def caught_up_at(self, log_end: int) -> float:
        return self.seen if self.end >= log_end else self.caught_up


@frozen
class PeerProgress:
    """One replica in DescribeQuorum."""

    replica: Voter
    votes: bool
    end: int
    durable: int
    fetched: float
    caught_up: float


class Leadership:
    def __init__(self, me: Voter, voters: Voters, epoch_start: int, now: float) -> None:
        self._me = me
        self.epoch_start = epoch_start  # where the entries of its own epoch begin; below, majorities do not commit
        self.trackers: dict[Voter, Tracker] = {}  # of voters and observers, without the leader
        self.announced = now  # when BeginEpoch was last sent
        self.successor: Voter | None = None  # takes over leadership once it has the whole log
        self.successor_until = FOREVER
        self.set_voters(voters, now)

    def set_voters(self, voters: Voters, now: float) -> None:
        self._voters = voters
        self._alone = voters == (self._me,)
        for voter in voters:
            if voter != self._me and voter not in self.trackers:
                self.trackers[voter] = Tracker(now, caught_up=now)  # assumed in sync until it had time to fetch

    # Events

    def fetched(self, fetch: Fetched, log_end: int, now: float) -> None:
        """`fetch.peer` fetched, and its log is a prefix of the leader's."""
        tracker, end = self.trackers.setdefault(fetch.peer, Tracker(now)), fetch.end
        if end >= log_end:
            tracker.caught_up = now
        elif tracker.end >= 0 and end >= tracker.leader_end:  # the whole log as of its previous fetch
            tracker.caught_up = max(tracker.caught_up, tracker.fetched)
        tracker.granted = fetch.last_epoch < 0 or (tracker.granted and end >= tracker.end)
        tracker.fetched = now
        tracker.pulse = fetch.pulse
        tracker.leader_end = log_end
        tracker.end = end
        tracker.last_epoch = fetch.last_epoch
        tracker.durable = min(fetch.durable, end)
        early, tracker.early = tracker.early, None
        if early is not None and fetch.durable >= 0 and (early.end, early.last_epoch) == (end, fetch.last_epoch):
            tracker.durable = max(tracker.durable, min(early.durable, end))

    def diverged(self, peer: Voter, now: float) -> None:
        """`peer` fetched, but its log diverges from the leader's: only the contact counts."""
        tracker = self.trackers.setdefault(peer, Tracker(now))
        tracker.fetched = now
        tracker.granted = False

    def synced(self, event: Synced) -> None:
        tracker = self.trackers.get(event.peer)
        if tracker is None:
            return
        if (tracker.end, tracker.last_epoch) == (event.end, event.last_epoch):
            tracker.durable = min(event.durable, tracker.end)
        else:
            tracker.early = event

    def grows(self, log_end: int) -> None:
        """The leader's log is about to grow beyond `log_end`: replicas at that end were caught up until now."""
        for tracker in self.trackers.values():
            if tracker.end >= log_end:
                tracker.caught_up = tracker.seen

    def forget_observers(self, silent_since: float) -> None:
        for peer, tracker in list(self.trackers.items()):
            if tracker.seen < silent_since and peer not in self._voters:
                del self.trackers[peer]

    # Queries

    def committed(self, own_durable: int) -> int:
        """The offset up to which a majority has everything on disk."""
        if self._alone:
            return own_durable
        return self.durable_on(majority(len(self._voters)), own_durable)

    def durable_on(self, count: int, own_durable: int) -> int:
        """The offset up to which `count` voters have everything on disk; -1: there are fewer voters."""
        return self._durable_on(count, own_durable, self._voters)

    def durable_without(self, replica: Voter, own_durable: int) -> int:
        """The offset up to which a majority has everything on disk, this replica not counted; -1: they are no majority
        without it."""
        others = tuple(voter for voter in self._voters if voter != replica)
        return self._durable_on(majority(len(self._voters)), own_durable, others)

    def _durable_on(self, count: int, own_durable: int, voters: Voters) -> int:
        durable = sorted(own_durable if voter == self._me else self.trackers[voter].durable for voter in voters)
        return durable[-count] if count <= len(durable) else -1

    @property
    def timed_by_pulse(self) -> bool:
        """Whether every voter is tracked by a shared pulse, and no hand-over is under way."""
        return self.successor is None and all(
            voter == self._me or (self.trackers[voter].end >= 0 and self.trackers[voter].pulse is not None)
            for voter in self._voters
        )

    def heard_quorum_at(self) -> float:
        """The latest time since which a majority, the leader included, has fetched."""
        seen = sorted(FOREVER if voter == self._me else self.trackers[voter].seen for voter in self._voters)
        return seen[-majority(len(seen))]

    def in_sync(self, log_end: int, since: float) -> Voters:
        """The voters that had the leader's whole log at some time after `since`."""
        return tuple(
            voter
            for voter in self._voters
            if voter == self._me
            or (self.trackers[voter].counts and self.trackers[voter].caught_up_at(log_end) >= since)
        )

    def all_caught_up(self, log_end: int, since: float) -> bool:
        """Whether every voter has the leader's whole log and has fetched after `since`."""
        return all(
            voter == self._me or (self.has_all(voter, log_end) and self.trackers[voter].seen >= since)
            for voter in self._voters
        )

    def unheard(self) -> Voters:
        """The voters that have not fetched in this epoch: they may not know that it has begun."""
        return tuple(voter for voter in self._voters if voter != self._me and self.trackers[voter].end < 0)

    def successors(self) -> Voters:
        """The other voters: the chosen successor first, then by how much of the log they have."""
        others = [voter for voter in self._voters if voter != self._me]
        trackers = self.trackers
        others.sort(key=lambda voter: (voter != self.successor, not trackers[voter].counts, -trackers[voter].end))
        return tuple(others)

    def has_all(self, voter: Voter, log_end: int) -> bool:
        tracker = self.trackers.get(voter)
        return tracker is not None and tracker.counts and tracker.end >= log_end

    def progress(self, log_end: int) -> tuple[PeerProgress, ...]:
        return tuple(
            PeerProgress(
                replica=peer,
                votes=peer in self._voters,
                end=tracker.end,
                durable=tracker.durable,
                fetched=tracker.seen,
                caught_up=tracker.caught_up_at(log_end),
            )
            for peer, tracker in self.trackers.items()
        )
