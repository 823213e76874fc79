"""The safety properties of Raft (figure 3), checked after every step of a history."""

from tailrace.raft.roles import Role
from tailrace.raft.voters import Voter
from tests.unit.raft.minimal_shell import Entry, Envelope, Member


class Violated(AssertionError):
    pass


class Invariants:
    def __init__(self) -> None:
        self.leaders: dict[int, Voter] = {}  # by epoch
        self.committed: list[tuple[Entry, int]] = []  # by offset, with the epoch it was committed in
        self._high_watermarks: dict[Voter, int] = {}  # since the last restart
        self._epochs: dict[Voter, int] = {}  # the highest that was sent in a message, over all restarts

    def restarted(self, member: Member) -> None:
        self._high_watermarks[member.me] = 0
        epoch, sent = member.replica.epoch, self._epochs.get(member.me, 0)
        if epoch < sent:
            raise Violated(f"epochs never decrease, even over a crash: {member.me} was in {sent}, restarts in {epoch}")

    def sent(self, me: Voter, envelope: Envelope) -> None:
        self._epochs[me] = max(self._epochs.get(me, 0), envelope.message.epoch)

    def truncated(self, member: Member, end: int) -> None:
        if end < member.replica.high_watermark:
            raise Violated(f"committed entries are never truncated: {member.me} truncates to {end}")

    def check(self, member: Member) -> None:
        replica = member.replica
        before, after = self._high_watermarks[member.me], replica.high_watermark
        if after < before:
            raise Violated(f"high watermarks never decrease: {member.me} from {before} to {after}")
        if replica.epoch < self._epochs.get(member.me, 0):
            raise Violated(f"epochs never decrease: {member.me} is back in {replica.epoch}")
        if after > before:
            self._high_watermarks[member.me] = after
            self._commits(member, before, after)
        if replica.role is Role.LEADER and replica.epoch not in self.leaders:
            self.leaders[replica.epoch] = member.me
            self._elected(member)
        elif replica.role is Role.LEADER and self.leaders[replica.epoch] != member.me:
            raise Violated(f"one leader per epoch: {self.leaders[replica.epoch]} and {member.me} in {replica.epoch}")

    def _commits(self, member: Member, before: int, after: int) -> None:
        if after > len(member.disk.entries):
            raise Violated(f"a high watermark is never above the log end: {member.me} at {after}")
        for offset, entry in enumerate(member.disk.entries[before:after], before):
            if offset == len(self.committed):
                self.committed.append((entry, member.replica.epoch))
            elif self.committed[offset][0] != entry:
                raise Violated(f"state machine safety: two entries at {offset}: {self.committed[offset][0]}, {entry}")

    def _elected(self, member: Member) -> None:
        entries, epoch = member.disk.entries, member.replica.epoch
        for offset, (entry, committed_in) in enumerate(self.committed):
            if committed_in < epoch and (offset >= len(entries) or entries[offset] != entry):
                raise Violated(f"leader completeness: {member.me} leads in {epoch} without {entry} at {offset}")
