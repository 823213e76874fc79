"""What a leader knows of those who fetch from it.

- *Commit*: the high watermark is the majority of durable offsets, the leader's own included, and moves only over
  entries of its own epoch (Raft §5.4.2, figure 8). An offset counts once the log it belongs to was found to be a prefix
  of the leader's, in this epoch.
- *Check-quorum*: a leader that a majority has not fetched from for a while may have been replaced without knowing it.
- *In sync*: a replica is, for clients, when it was at the log's end not longer than `replica.lag.time.max.ms` ago.
"""

from dataclasses import dataclass
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.raft.messages import Fetched, Pulse, Synced
from tailrace.raft.voters import Voter, Voters, majority

FOREVER: Final = float("inf")


@dataclass(slots=True)
class Tracker:
    """One replica, as its fetches in this epoch show it."""

    fetched: float  # when it last fetched; before the first time, when the leader was elected
    end: int = -1  # the end of its log, which is a prefix of ours; -1: it has not fetched in this epoch
    last_epoch: int = -1  # of the last entry there
    durable: int = -1  # what it has on disk of that; -1: it does not count
    caught_up: float = -FOREVER  # when it last had all that we had then
    our_end: int = 0  # our log end when it last fetched
    pulse: Pulse | None = None  # its fetch session: a fetch there that names no change repeats the last one
    early: Synced | None = None  # news of a log that it has not fetched with yet: they overtook that fetch

    @property
    def counts(self) -> bool:
        """Whether it vouches for what it has, as far as it has shown."""
        return self.durable >= 0 or self.end < 0

    @property
    def seen(self) -> float:
        return self.fetched if self.pulse is None else max(self.fetched, self.pulse.at)

    def caught_up_at(self, log_end: int) -> float:
        return self.seen if self.end >= log_end else self.caught_up


@frozen
class PeerProgress:
    """One line of DescribeQuorum."""

    replica: Voter
    votes: bool
    end: int
    durable: int
    fetched: float
    caught_up: float


class Leadership:
    def __init__(self, me: Voter, voters: Voters, epoch_start: int, now: float) -> None:
        self._me = me
        self.epoch_start = epoch_start  # where this leader's own entries begin; it commits nothing by counting below
        self.trackers: dict[Voter, Tracker] = {}  # of voters and observers, without ourselves
        self.announced = now  # when the voters were last told who leads
        self.successor: Voter | None = None  # leadership goes there as soon as it has the whole log
        self.successor_until = FOREVER
        self.voters_are(voters, now)

    def voters_are(self, voters: Voters, now: float) -> None:
        self._voters = voters
        self._alone = voters == (self._me,)
        for voter in voters:
            if voter != self._me and voter not in self.trackers:
                self.trackers[voter] = Tracker(now, caught_up=now)  # until it had time to show

    # What is told

    def fetched(self, fetch: Fetched, log_end: int, now: float) -> None:
        """Who fetched has our log up to where it is."""
        tracker, end = self.trackers.setdefault(fetch.peer, Tracker(now)), fetch.end
        if end >= log_end:
            tracker.caught_up = now
        elif tracker.end >= 0 and end >= tracker.our_end:  # all that we had when it asked before
            tracker.caught_up = max(tracker.caught_up, tracker.fetched)
        tracker.fetched = now
        tracker.pulse = fetch.pulse
        tracker.our_end = log_end
        tracker.end = end
        tracker.last_epoch = fetch.last_epoch
        tracker.durable = min(fetch.durable, end)
        early, tracker.early = tracker.early, None
        if early is not None and fetch.durable >= 0 and (early.end, early.last_epoch) == (end, fetch.last_epoch):
            tracker.durable = max(tracker.durable, min(early.durable, end))

    def heard(self, peer: Voter, now: float) -> None:
        """`peer` fetched, but what it has is not ours."""
        tracker = self.trackers.setdefault(peer, Tracker(now))
        tracker.fetched = now

    def synced(self, news: Synced) -> None:
        tracker = self.trackers.get(news.peer)
        if tracker is None:
            return
        if (tracker.end, tracker.last_epoch) == (news.end, news.last_epoch):
            tracker.durable = min(news.durable, tracker.end)
        else:
            tracker.early = news

    def grows(self, log_end: int) -> None:
        """Our log is about to grow beyond `log_end`: who was there was in sync until now."""
        for tracker in self.trackers.values():
            if tracker.end >= log_end:
                tracker.caught_up = tracker.seen

    def forget_observers(self, silent_since: float) -> None:
        for peer, tracker in list(self.trackers.items()):
            if tracker.seen < silent_since and peer not in self._voters:
                del self.trackers[peer]

    # What follows

    def committed(self, own_durable: int) -> int:
        """The offset up to which a majority has everything on disk."""
        if self._alone:
            return own_durable
        return self.held_by(majority(len(self._voters)), own_durable)

    def held_by(self, count: int, own_durable: int) -> int:
        """The offset up to which `count` voters have everything on disk; -1: there are not so many."""
        durable = sorted(own_durable if voter == self._me else self.trackers[voter].durable for voter in self._voters)
        return durable[-count] if count <= len(durable) else -1

    @property
    def rests(self) -> bool:
        """Whether every voter's liveness is a pulse, and nothing else is under way."""
        return self.successor is None and all(
            voter == self._me or (self.trackers[voter].end >= 0 and self.trackers[voter].pulse is not None)
            for voter in self._voters
        )

    def heard_quorum_at(self) -> float:
        """The last time at which a majority had fetched."""
        seen = sorted(FOREVER if voter == self._me else self.trackers[voter].seen for voter in self._voters)
        return seen[-majority(len(seen))]

    def in_sync(self, log_end: int, since: float) -> Voters:
        """The voters that had all we had at some time after `since`."""
        return tuple(
            voter
            for voter in self._voters
            if voter == self._me
            or (self.trackers[voter].counts and self.trackers[voter].caught_up_at(log_end) >= since)
        )

    def all_there(self, log_end: int, since: float) -> bool:
        """Whether every voter has all that we have, and was heard of after `since`."""
        return all(
            voter == self._me or (self.has_all(voter, log_end) and self.trackers[voter].seen >= since)
            for voter in self._voters
        )

    def unheard(self) -> Voters:
        """Voters that have not fetched in this epoch: they may not know that it has begun."""
        return tuple(voter for voter in self._voters if voter != self._me and self.trackers[voter].end < 0)

    def successors(self) -> Voters:
        """The other voters, the one with most of our log first; the named one before all."""
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
