"""Both protocols in one group, under random events: a partition never has two owners, and in the end each has one.

One member of the consumer protocol always stays, so that the group stays a consumer group. Members of the classic
protocol are eager (they revoke everything before they join) or cooperative (they report what they own, and join again
after they have revoked what they were not assigned).
"""

from struct import pack

import pytest

from tailrace.groups.consumer.partition_sets import PartitionSet, by_topic, difference
from tailrace.groups.consumer_protocol import (
    ConsumerProtocolPartitions,
    ConsumerProtocolSubscription,
    decode_assignment,
)
from tailrace.groups.requests import JoinAnswer, JoinRequest, MemberId, SyncAnswer, SyncRequest
from tailrace.model.faults import Fault, RebalanceInProgress
from tailrace.wire.compile import encode
from tests.properties.test_reconciliation import SESSION_S, Client, World, all_partitions

RUNS, EVENTS, VERSION = 100, 100, 3


class ClassicClient:
    """A client of the classic protocol, one request at a time."""

    def __init__(self, world: World, name: str, *, is_eager: bool) -> None:
        self.world = world
        self.name = name
        self.is_eager = is_eager
        self.member_id = ""
        self.generation = -1
        self.consuming: PartitionSet = ()
        self.next_request = self.join
        self.answered_at = world.now

    def step(self) -> None:
        try:
            self.next_request()
            self.answered_at = self.world.now
        except RebalanceInProgress:
            self.answered_at = self.world.now
            self.next_request = self.join
        except Fault:
            self.abandon_all()

    def abandon_all(self) -> None:
        self.consuming, self.member_id, self.next_request = (), "", self.join

    def join(self) -> None:
        if self.is_eager:
            self.consuming = ()
        turn = self.world.turn()
        self.world.names += 1
        request = JoinRequest(
            identity=MemberId(self.member_id),
            client_id=self.name,
            client_host="",
            session_timeout_ms=int(SESSION_S * 1000),
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols={"range": self._subscription()},
        )
        self.world.groups.join("g", request, "join", f"{self.name}-{self.world.names}", turn)
        self.world.write(turn)
        ((_, answer),) = turn.answers
        assert isinstance(answer, JoinAnswer)
        self.member_id, self.generation, self.next_request = answer.member_id, answer.generation, self.sync

    def _subscription(self) -> bytes:
        topics = self.world.topics
        owned = [(topics.name_of(topic), some) for topic, some in by_topic(self.consuming).items()]
        value = ConsumerProtocolSubscription(
            topics=("t",),
            owned_partitions=tuple(
                ConsumerProtocolPartitions(topic=name, partitions=some) for name, some in owned if name is not None
            ),
        )
        return pack(">h", VERSION) + encode(value, VERSION)

    def sync(self) -> None:
        turn = self.world.turn()
        request = SyncRequest(identity=MemberId(self.member_id), generation=self.generation, assignments={})
        self.world.groups.sync("g", request, "sync", turn)
        ((_, answer),) = turn.answers
        assert isinstance(answer, SyncAnswer)
        assigned = decode_assignment(answer.assignment, self.world.topics)
        revoked = difference(self.consuming, assigned)
        self.consuming = assigned
        self.next_request = self.join if revoked else self.heartbeat

    def heartbeat(self) -> None:
        self.world.groups.heartbeat("g", MemberId(self.member_id), self.generation, self.world.turn())


class MixedWorld(World):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.classic: dict[str, ClassicClient] = {}
        self.permanent = Client("permanent", ("t",))
        self.heartbeat_permanent()

    def heartbeat_permanent(self) -> None:
        self.permanent.apply_assignment()
        self.heartbeat(self.permanent)

    def happen(self) -> None:
        chance = self.chance
        match chance.randrange(6):
            case 0 if len(self.classic) < 4:
                self.names += 1
                name = f"o{self.names}"
                self.classic[name] = ClassicClient(self, name, is_eager=chance.random() < 0.5)
            case 1 if self.classic and chance.random() < 0.3:
                del self.classic[chance.choice(list(self.classic))]  # it dies
            case 2 | 3 if self.classic:
                chance.choice(list(self.classic.values())).step()
            case 4:
                self.heartbeat_permanent()
            case _:
                super().happen()

    def elapse(self, seconds: float) -> None:
        self.heartbeat_permanent()
        for client in self.classic.values():
            if self.now + seconds - client.answered_at >= SESSION_S:
                client.abandon_all()
        super().elapse(min(seconds, SESSION_S - 0.1))
        self.heartbeat_permanent()
        super().elapse(0.1)

    def consuming(self) -> list[tuple[str, PartitionSet]]:
        classic = [(one.name, one.consuming) for one in self.classic.values()]
        return [*super().consuming(), *classic, (self.permanent.name, self.permanent.consuming)]


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_partition_never_has_two_owners_and_in_the_end_each_has_one(seed: int) -> None:
    world = MixedWorld(seed)
    for _ in range(EVENTS):
        world.happen()
        world.owners()
    for _ in range(80):  # no more faults: every client sends its requests and applies its assignment
        world.elapse(0.5)
        for client in world.clients.values():
            client.apply_assignment()
            world.heartbeat(client)
        for classic in world.classic.values():
            classic.step()
        world.owners()
    subscribed = ["t", *(name for client in world.clients.values() for name in client.topics)]
    assert sorted(world.owners()) == all_partitions(world.topics, subscribed)
