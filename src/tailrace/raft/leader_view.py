"""What a follower or an observer knows about the leader of its epoch.

A follower adopts the leader's high watermark only up to its own log end, and only once its log is known to be a prefix
of the leader's: entries that will be truncated must never look committed.
"""

from dataclasses import dataclass

from tailrace.raft.messages import Pulse
from tailrace.raft.voters import Voter


@dataclass(slots=True)
class LeaderView:
    leader: Voter
    heard: float  # when the leader last answered a fetch of this replica, or announced itself
    pulse: Pulse | None = None  # the same for all partitions of a fetch session
    given_up: bool = False  # disconnected, resigned or silent, and not heard from since
    matched: bool = False  # our log is a prefix of the leader's; true for the rest of the epoch: a leader only appends
    high_watermark: int = -1  # the leader's; late answers do not lower it

    @property
    def heard_at(self) -> float:
        return self.heard if self.pulse is None else max(self.heard, self.pulse.at)

    def is_heard(self, now: float, timeout_s: float) -> bool:
        return not self.given_up and now < self.heard_at + timeout_s

    def contact(self, now: float, pulse: Pulse | None) -> None:
        """The leader answered or announced itself."""
        self.heard = now
        self.given_up = False
        self.pulse = pulse

    def matches(self, high_watermark: int) -> None:
        """A fetch answer showed that our log is a prefix of the leader's."""
        self.matched = True
        self.high_watermark = max(self.high_watermark, high_watermark)

    def begun_anew(self) -> None:
        """Our log was emptied."""
        self.matched = False
        self.high_watermark = -1

    def committed(self, log_end: int) -> int:
        """How far our own log is known to be committed; -1: unknown."""
        return min(self.high_watermark, log_end) if self.matched else -1
