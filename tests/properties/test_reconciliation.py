"""A consumer group (KIP-848) under random events: a partition never has two owners, and in the end each has one.

The owner of a partition is the client that *consumes* it: from when the partition was assigned to it until it revokes
it, which may be any time after it was asked to. Clients are slow, lose answers (then they send a full heartbeat, and
take no new partitions before it is answered), die and come back; topics get more partitions; coordinators fail over.
"""

import random
from collections.abc import Iterable

import pytest

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.partition_sets import PartitionSet, difference
from tailrace.groups.consumer.requests import Heartbeat, HeartbeatAnswer
from tailrace.groups.consumer.states import GroupState
from tailrace.groups.groups import Groups
from tailrace.groups.records import Entry
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedMemberEpoch, UnknownMember
from tailrace.model.ids import TopicPartition
from tests.unit.groups.consumer.stage import StagedTopics
from tests.unit.groups.stage import RULES

RUNS, EVENTS = 150, 120
SESSION_S = RULES.consumer_session_timeout_ms / 1000


class Client:
    def __init__(self, name: str, topics: tuple[str, ...]) -> None:
        self.name = name
        self.topics = topics
        self.epoch = 0
        self.assigned: PartitionSet = ()
        self.consuming: PartitionSet = ()
        self.answered_at = 0.0
        self.is_in_step = True  # the last answer was not lost

    def heartbeat(self) -> Heartbeat:
        identity = MemberId(self.name)
        if self.epoch == 0 or not self.is_in_step:
            owned = self.consuming if self.epoch else ()
            return Heartbeat(
                identity=identity, epoch=self.epoch, rebalance_timeout_ms=30_000, names=self.topics, owned=owned
            )
        owned_or_none = self.consuming if self.consuming == self.assigned else None
        return Heartbeat(identity=identity, epoch=self.epoch, owned=owned_or_none)

    def take_answer(self, answer: HeartbeatAnswer, now: float) -> None:
        self.epoch, self.answered_at, self.is_in_step = answer.epoch, now, True
        if answer.assigned is not None:
            self.assigned = answer.assigned

    def apply_assignment(self) -> None:
        """Revoke what is no longer assigned, and consume what is."""
        if self.is_in_step:
            self.consuming = self.assigned

    def abandon_all(self) -> None:
        self.epoch, self.assigned, self.consuming, self.is_in_step = 0, (), (), True


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
            rules=RULES,
            alarms=self.groups.alarms,
            topics=self.topics,
        )

    def write(self, turn: GroupTurn) -> None:
        for entry in turn.records:
            assert isinstance(entry, Entry)
            self.log.append(entry)
            self.groups.replay(entry)

    def heartbeat(self, client: Client, *, answer_is_lost: bool = False) -> None:
        turn = self.turn()
        try:
            answer = self.groups.consumer_heartbeat("g", client.heartbeat(), turn)
        except (FencedMemberEpoch, UnknownMember):
            client.abandon_all()
            return
        self.write(turn)
        if answer_is_lost:
            client.is_in_step = False
        else:
            client.take_answer(answer, self.now)

    def elapse(self, seconds: float) -> None:
        self.now += seconds
        for client in self.clients.values():
            if self.now - client.answered_at >= SESSION_S:
                client.abandon_all()  # as clients do without answers: other members may own their partitions by now
        turn = self.turn()
        self.groups.ring(turn)
        self.write(turn)

    def fail_over(self) -> None:
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self.groups.serve(self.turn())

    def happen(self) -> None:
        """One random event."""
        chance = self.chance
        match chance.randrange(14):
            case 0 | 1 if len(self.clients) < 6:
                self.names += 1
                topics = chance.choice([("t",), ("t", "u"), ("u",)])
                self.clients[f"m{self.names}"] = client = Client(f"m{self.names}", topics)
                self.heartbeat(client)
            case 2 if self.clients:
                del self.clients[chance.choice(list(self.clients))]  # it dies
            case 3 if self.clients:
                client = self.clients.pop(chance.choice(list(self.clients)))
                turn = self.turn()
                try:
                    leaving = Heartbeat(identity=MemberId(client.name), epoch=-1)
                    self.groups.consumer_heartbeat("g", leaving, turn)
                    self.write(turn)
                except UnknownMember:
                    pass
            case 4:
                self.topics.make("t", partition_count(self.topics, "t") + 1)
            case 5:
                self.elapse(chance.choice([0.1, 1.0, 4.0, SESSION_S]))
            case 6:
                self.fail_over()
            case 7 | 8 if self.clients:
                chance.choice(list(self.clients.values())).apply_assignment()
            case _ if self.clients:
                client = chance.choice(list(self.clients.values()))
                self.heartbeat(client, answer_is_lost=chance.random() < 0.2)
            case _:
                pass

    def owners(self) -> dict[TopicPartition, str]:
        """The client that consumes each partition; fails if there are two."""
        found: dict[TopicPartition, str] = {}
        for name, partitions in self.consuming():
            for one in partitions:
                assert one not in found, f"{one} is consumed by {found[one]} and {name}"
                found[one] = name
        return found

    def consuming(self) -> list[tuple[str, PartitionSet]]:
        return [(client.name, client.consuming) for client in self.clients.values()]


def partition_count(topics: StagedTopics, name: str) -> int:
    found = topics.find(name)
    return 0 if found is None else found.partitions


def all_partitions(topics: StagedTopics, names: Iterable[str]) -> list[TopicPartition]:
    found = [topics.topics[name] for name in sorted(set(names))]
    return sorted(TopicPartition(one.id, number) for one in found for number in range(one.partitions))


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_partition_never_has_two_owners_and_in_the_end_each_has_one(seed: int) -> None:
    world = World(seed)
    for _ in range(EVENTS):
        world.happen()
        world.owners()
    for _ in range(60):  # no more faults: every client sends heartbeats and applies its assignment
        world.elapse(0.5)
        for client in world.clients.values():
            client.apply_assignment()
            world.heartbeat(client)
        world.owners()
    subscribed = [name for client in world.clients.values() for name in client.topics]
    assert sorted(world.owners()) == all_partitions(world.topics, subscribed)
    group = world.groups.groups.get("g")
    if isinstance(group, ConsumerGroup) and world.clients:
        assert group.state is GroupState.STABLE
        assert sorted(group.members) == sorted(world.clients)
        for member in group.members.values():
            assert not difference(member.current.assigned, group.target[member.id])
