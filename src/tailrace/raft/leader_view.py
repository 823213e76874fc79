"""What a follower or an observer knows of the leader of its epoch.

The high watermark it may take from a leader is bounded by its own log, and counts only once its log is known to be a
prefix of that leader's: entries that are about to be truncated must never look committed.
"""

from dataclasses import dataclass

from tailrace.raft.messages import Pulse
from tailrace.raft.voters import Voter


@dataclass(slots=True)
class Following:
    leader: Voter
    heard: float  # when it last answered us, or announced itself
    pulse: Pulse | None = None  # the same, for all partitions of a connection
    given_up: bool = False  # reset, resigned or silent; until it is heard again
    matched: bool = False  # our log is a prefix of its; within an epoch this stays so, for a leader only appends
    high_watermark: int = -1  # its own; late answers do not lower it

    @property
    def heard_at(self) -> float:
        return self.heard if self.pulse is None else max(self.heard, self.pulse.at)

    def hears(self, now: float, timeout_s: float) -> bool:
        return not self.given_up and now < self.heard_at + timeout_s

    def answered(self, now: float, pulse: Pulse | None) -> None:
        self.heard = now
        self.given_up = False
        self.pulse = pulse

    def matches(self, high_watermark: int) -> None:
        self.matched = True
        self.high_watermark = max(self.high_watermark, high_watermark)

    def committed(self, log_end: int) -> int:
        """How far our own log is committed, as far as this leader has told."""
        return min(self.high_watermark, log_end) if self.matched else -1
