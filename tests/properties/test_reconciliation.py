"""A consumer group (KIP-848) under any order of events: a partition never has two owners, and in the end all have one.

The owner of a partition is who *works* on it: a client from when it was told to have it until it gave it up, which it
may do at any time after it was told to. Clients are slow, lose answers (they say all once more then, and begin nothing
before they are answered), die, come back; topics grow; brokers take over from the log.
"""

import random
from collections.abc import Iterable

import pytest

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.requests import Heartbeat, HeartbeatAnswer
from tailrace.groups.consumer.shares import Share, without
from tailrace.groups.consumer.states import GroupState
from tailrace.groups.groups import Groups
from tailrace.groups.records import Entry
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedMemberEpoch, UnknownMember
from tailrace.model.ids import TopicPartition
from tests.unit.groups.consumer_stage import StagedTopics, plain_rules

RUNS, EVENTS = 150, 120
SESSION_S = plain_rules.consumer_session_timeout_ms / 1000


class Client:
    def __init__(self, name: str, reads: tuple[str, ...]) -> None:
        self.name = name
        self.reads = reads
        self.epoch = 0
        self.told: Share = ()
        self.works_on: Share = ()
        self.heard_at = 0.0
        self.is_sure = True  # the last answer was not lost

    def beat(self) -> Heartbeat:
        who = MemberId(self.name)
        if self.epoch == 0 or not self.is_sure:
            owned = self.works_on if self.epoch else ()
            return Heartbeat(who=who, epoch=self.epoch, rebalance_timeout_ms=30_000, names=self.reads, owned=owned)
        return Heartbeat(who=who, epoch=self.epoch, owned=self.works_on if self.works_on == self.told else None)

    def hear(self, told: HeartbeatAnswer, now: float) -> None:
        self.epoch, self.heard_at, self.is_sure = told.epoch, now, True
        if told.assigned is not None:
            self.told = told.assigned

    def obey(self) -> None:
        if self.is_sure:
            self.works_on = self.told

    def give_up_all(self) -> None:
        self.epoch, self.told, self.works_on, self.is_sure = 0, (), (), True


class World:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.topics = StagedTopics()
        self.topics.make("t", self.chance.randrange(1, 8))
        self.topics.make("u", self.chance.randrange(1, 4))
        self.groups = Groups()
        self.log: list[Entry] = []
        self.now = 1000.0
        self.clients: dict[str, Client] = {}
        self.names = 0
        self.groups.serve(self.turn())

    def turn(self) -> GroupTurn:
        return GroupTurn(
            now=self.now,
            wall_ms=int(self.now * 1000),
            rules=plain_rules,
            alarms=self.groups.alarms,
            topics=self.topics,
        )

    def write(self, turn: GroupTurn) -> None:
        for entry in turn.records:
            assert isinstance(entry, Entry)
            self.log.append(entry)
            self.groups.replay(entry)

    def beat(self, client: Client, *, answer_is_lost: bool = False) -> None:
        turn = self.turn()
        try:
            told = self.groups.beat("g", client.beat(), turn)
        except (FencedMemberEpoch, UnknownMember):
            client.give_up_all()
            return
        self.write(turn)
        if answer_is_lost:
            client.is_sure = False
        else:
            client.hear(told, self.now)

    def elapse(self, seconds: float) -> None:
        self.now += seconds
        for client in self.clients.values():
            if self.now - client.heard_at >= SESSION_S:
                client.give_up_all()  # as clients do that hear nothing: what they have may be somebody else's by now
        turn = self.turn()
        self.groups.ring(turn)
        self.write(turn)

    def reload(self) -> None:
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self.groups.serve(self.turn())

    def happen(self) -> None:
        chance = self.chance
        match chance.randrange(14):
            case 0 | 1 if len(self.clients) < 6:
                self.names += 1
                reads = chance.choice([("t",), ("t", "u"), ("u",)])
                self.clients[f"m{self.names}"] = client = Client(f"m{self.names}", reads)
                self.beat(client)
            case 2 if self.clients:
                del self.clients[chance.choice(list(self.clients))]  # it dies
            case 3 if self.clients:
                client = self.clients.pop(chance.choice(list(self.clients)))
                turn = self.turn()
                try:
                    self.groups.beat("g", Heartbeat(who=MemberId(client.name), epoch=-1), turn)
                    self.write(turn)
                except UnknownMember:
                    pass
            case 4:
                self.topics.make("t", len_of(self.topics, "t") + 1)
            case 5:
                self.elapse(chance.choice([0.1, 1.0, 4.0, SESSION_S]))
            case 6:
                self.reload()
            case 7 | 8 if self.clients:
                chance.choice(list(self.clients.values())).obey()
            case _ if self.clients:
                client = chance.choice(list(self.clients.values()))
                self.beat(client, answer_is_lost=chance.random() < 0.2)
            case _:
                pass

    def owners(self) -> dict[TopicPartition, str]:
        """Who works on what; two who do are a bug."""
        found: dict[TopicPartition, str] = {}
        for name, partitions in self.working():
            for one in partitions:
                assert one not in found, f"{one} is worked on by {found[one]} and {name}"
                found[one] = name
        return found

    def working(self) -> list[tuple[str, Share]]:
        return [(client.name, client.works_on) for client in self.clients.values()]


def len_of(topics: StagedTopics, name: str) -> int:
    found = topics.find(name)
    return 0 if found is None else found.partitions


def every(topics: StagedTopics, names: Iterable[str]) -> list[TopicPartition]:
    found = [topics.topics[name] for name in sorted(set(names))]
    return sorted(TopicPartition(one.id, number) for one in found for number in range(one.partitions))


@pytest.mark.parametrize("seed", range(RUNS))
def test_never_two_owners_and_in_the_end_one_each(seed: int) -> None:
    world = World(seed)
    for _ in range(EVENTS):
        world.happen()
        world.owners()
    for _ in range(60):  # all is well from now on: everybody is heard of, and does what it is told
        world.elapse(0.5)
        for client in world.clients.values():
            client.obey()
            world.beat(client)
        world.owners()
    reads = [name for client in world.clients.values() for name in client.reads]
    assert sorted(world.owners()) == every(world.topics, reads)
    group = world.groups.groups.get("g")
    if isinstance(group, ConsumerGroup) and world.clients:
        assert group.state is GroupState.STABLE
        assert sorted(group.members) == sorted(world.clients)
        for member in group.members.values():
            assert not without(member.standing.assigned, group.target[member.id])
