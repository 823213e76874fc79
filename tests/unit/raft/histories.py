"""Random histories: replicas on a network that loses, duplicates, delays and reorders messages, and on volatile disks.

A seed determines a history. A crash loses all or some of the unsynced entries. Storing a vote takes time.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

from tailrace.model.ids import BrokerId
from tailrace.raft.effects import Effects
from tailrace.raft.events import AddVoter, Event, LeaderDisconnected, RemoveVoter, Transfer
from tailrace.raft.messages import Synced
from tailrace.raft.replica import Replica
from tailrace.raft.roles import Role
from tailrace.raft.timing import Timing
from tailrace.raft.voters import Voter
from tests.unit.raft.invariants import Invariants, Violated
from tests.unit.raft.minimal_shell import Disk, Envelope, Member, voter

IN_FLIGHT_MAX = 40
LATE_MAX = 60
CONVERGENCE_S = 6.0
# Short timeouts: more elections in less time.
timing = Timing(
    fetch_timeout_s=0.4,
    check_quorum_s=0.4,
    election_timeout_s=0.3,
    backoff_s=0.02,
    backoff_max_s=0.2,
    announcement_s=0.1,
)


class History:
    def __init__(self, seed: int, size: int, machine: type[Replica] = Replica) -> None:
        self.chance = Random(seed)
        self.now = 0.0
        self.size = size
        self.invariants = Invariants()
        self.met: Counter[str] = Counter()
        self.in_flight: list[Envelope] = []
        self.late: list[Envelope] = []
        self.broken_links: list[frozenset[int]] = []
        first = tuple(voter(one) for one in range(1, size + 1))
        self.members = {one: self._member(voter(one), first) for one in range(1, size + 2)}  # the last is an observer
        self.values = 0
        for member in self.members.values():
            member.machine = machine
            member.timing = timing
            self._start(member)

    def _member(self, me: Voter, first: tuple[Voter, ...]) -> Member:
        def post(envelope: Envelope) -> None:
            self.invariants.sent(me, envelope)
            self.in_flight.append(envelope)

        member = Member(me, first, Disk(), post, self._observe)
        member.slow_votes = True
        return member

    def run(self, steps: int) -> None:
        # Swarm testing: in each history every kind of fault is rare, frequent or absent.
        fault_weights = {action: weight * self.chance.choice((0, 1, 3)) for action, weight in FAULTS.items()}
        actions, weights = [*NORMAL, *fault_weights], [*NORMAL.values(), *fault_weights.values()]
        for _ in range(steps):
            self.now += self.chance.random() * 0.006
            action = self.chance.choices(actions, weights)[0]
            action(self)
        self.heal_and_converge()

    # Actions

    def deliver(self) -> None:
        if not self.in_flight:
            return
        if len(self.in_flight) > IN_FLIGHT_MAX:
            del self.in_flight[: IN_FLIGHT_MAX // 2]
        envelope = self.in_flight.pop(self.chance.randrange(min(8, len(self.in_flight))))
        luck = self.chance.random()
        if luck < 0.1:
            self.in_flight.append(envelope)  # a duplicate
        if luck < 0.92:
            self._arrive(envelope)
        elif luck < 0.97:
            self.late.append(envelope)

    def arrive_late(self) -> None:
        """Deliver a message that is so late that another epoch may have begun."""
        if self.late:
            self._arrive(self.late.pop(self.chance.randrange(len(self.late))))
        del self.late[:-LATE_MAX]

    def _arrive(self, envelope: Envelope) -> None:
        sender, to = envelope.route()
        member = self.members.get(to)
        if member is not None and member.alive and frozenset((sender, to)) not in self.broken_links:
            self._step(member, envelope.message, envelope)

    def tick(self) -> None:
        self.now += self.chance.random() * 0.05
        for member in self._alive():
            member.tick(self.now, self.chance.random())
            self._check(member)

    def fetch(self) -> None:
        for member in self._alive():
            member.fetch_max_entries = self.chance.choice((1, 1, 2, 4))
            member.fetch()

    def append(self) -> None:
        for member in self._leaders():
            if not member.replica.hands_over:
                self.values += 1
                member.append(f"value {self.values}", self.now, self.chance.random())
                self._check(member)

    def start_sync(self) -> None:
        for member in self._alive():
            member.start_sync()

    def finish_sync(self) -> None:
        member = self._any_alive()
        member.finish_sync()
        self._check(member)
        fetch = member.replica.fetch()
        if fetch is not None:
            member.post(Envelope(Synced.of(fetch)))

    def finish_vote(self) -> None:
        for member in self._alive():
            if self.chance.random() < 0.7:
                member.finish_vote(self.now, self.chance.random())
                self._check(member)

    def crash(self) -> None:
        leaders = self._leaders()
        member = self.chance.choice(leaders) if leaders and self.chance.random() < 0.4 else self._any_alive()
        unsynced = len(member.disk.entries) - member.disk.durable
        self.met["entries lost in a crash"] += unsynced
        member.crash(kept=self.chance.randrange(unsynced + 1) if unsynced and self.chance.random() < 0.3 else 0)
        self.met["crashes"] += 1

    def restart(self) -> None:
        down = [member for member in self.members.values() if not member.alive]
        if down:
            self._start(self.chance.choice(down))

    def cut_links(self) -> None:
        ids = list(self.members)
        self.chance.shuffle(ids)
        one_side = ids[: self.chance.randrange(1, len(ids))]
        self.broken_links = [frozenset((a, b)) for a in one_side for b in ids if b not in one_side]

    def cut_leader_off(self) -> None:
        """Isolate the leader, alone or with one other replica; unless they are a majority, what it appends is lost."""
        for member in self._leaders():
            one_side = [int(member.me.broker), self.chance.choice(list(self.members))]
            self.broken_links = [frozenset((a, b)) for a in one_side for b in self.members if b not in one_side]
            self.append()
            if self.chance.random() < 0.3:
                self.change_voters()

    def leave_a_tail(self) -> None:
        """A leader appends and syncs entries that no other replica has, and crashes."""
        for member in self._leaders():
            for _ in range(self.chance.randrange(1, 5)):
                self.append()
            member.start_sync()
            member.finish_sync()
            self._check(member)
            member.crash()

    def heal(self) -> None:
        self.broken_links = []

    def lose_leader(self) -> None:
        member = self._any_alive()
        if member.replica.leader is not None:
            live = tuple(BrokerId(one) for one in self.members if self.chance.random() < 0.5)
            self._step(member, LeaderDisconnected(member.replica.leader.broker, live))

    def transfer(self) -> None:
        for member in self._leaders():
            self._step(member, Transfer(self.chance.choice(list(self.members.values())).me))

    def change_voters(self) -> None:
        for member in self._leaders():
            other = self.chance.choice(list(self.members.values())).me
            voters = member.replica.voters
            if other not in voters:
                self._step(member, AddVoter(other))
            elif len(voters) >= self.size:
                self._step(member, RemoveVoter(other))

    # Convergence

    def heal_and_converge(self) -> None:
        self.heal()
        while len(self._alive()) < len(self.members):
            self.restart()
        until = self.now + CONVERGENCE_S
        while self.now < until:
            self.now += 0.03
            for member in self._alive():
                member.tick(self.now, self.chance.random())
                member.finish_vote(self.now, self.chance.random())
                member.fetch_max_entries = 100
                member.fetch()
                member.start_sync()
                member.finish_sync()
                self._check(member)
            self.in_flight, arriving = [], self.in_flight
            for envelope in arriving:
                self._arrive(envelope)
        self._converged()

    def _converged(self) -> None:
        leader = max(self._leaders(), key=lambda member: member.replica.epoch, default=None)
        if leader is None:
            raise Violated("no leader after the faults ended")
        for member in self._alive():
            if member.disk.entries != leader.disk.entries or member.replica.high_watermark != len(leader.disk.entries):
                raise Violated(f"after the faults ended, {member.me} has not converged with {leader.me}")

    # Internals

    def _start(self, member: Member) -> None:
        member.start(self.now, self.chance.random())
        self.invariants.restarted(member)
        self._check(member)

    def _step(self, member: Member, event: Event, envelope: Envelope | None = None) -> None:
        member.step(event, self.now, self.chance.random(), envelope.entries if envelope is not None else ())
        self._check(member)

    def _check(self, member: Member) -> None:
        self.invariants.check(member)

    def _observe(self, member: Member, event: Event, effects: Effects) -> None:
        if effects.truncate_to is not None:
            self.invariants.truncated(member, effects.truncate_to)
            self.met["truncations"] += 1
        if effects.append_voters is not None:
            self.met["voter changes"] += 1
        self.met["elections won"] += any(move.to is Role.LEADER for move in effects.moves)

    def _alive(self) -> list[Member]:
        return [member for member in self.members.values() if member.alive]

    def _any_alive(self) -> Member:
        if not self._alive():
            self.restart()
        return self.chance.choice(self._alive())

    def _leaders(self) -> list[Member]:
        return [member for member in self._alive() if member.replica.role is Role.LEADER]


Action = Callable[[History], None]
NORMAL: dict[Action, int] = {
    History.deliver: 700,
    History.arrive_late: 20,
    History.fetch: 40,
    History.tick: 60,
    History.append: 30,
    History.start_sync: 40,
    History.finish_sync: 90,
    History.finish_vote: 120,
    History.restart: 20,
    History.heal: 25,
}
FAULTS: dict[Action, int] = {
    History.crash: 4,
    History.cut_links: 3,
    History.cut_leader_off: 6,
    History.leave_a_tail: 5,
    History.lose_leader: 15,
    History.transfer: 4,
    History.change_voters: 40,
}
