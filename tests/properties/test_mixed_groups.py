"""Both protocols in one group: whoever comes, goes, dies or is slow, a partition has one owner, and in the end all do.

One member of the consumer protocol stays, so the group stays a consumer group. Members of the classic protocol are
eager (they give up all before they join) or cooperative (they say what they have, and join again when they have given
up what they did not get back).
"""

from struct import pack

import pytest

from tailrace.groups.consumer.embedded import EmbeddedPartitions, EmbeddedSubscription, assignment_of
from tailrace.groups.consumer.shares import Share, by_topic, without
from tailrace.groups.requests import Joined, Joining, MemberId, Synced, Syncing
from tailrace.model.faults import Fault, RebalanceInProgress
from tailrace.wire.compile import encode
from tests.properties.test_reconciliation import SESSION_S, Client, World, every

RUNS, EVENTS, VERSION = 100, 100, 3


class OldClient:
    """What a client of the classic protocol does next, one step at a time."""

    def __init__(self, world: World, name: str, *, is_eager: bool) -> None:
        self.world = world
        self.name = name
        self.is_eager = is_eager
        self.member_id = ""
        self.generation = -1
        self.works_on: Share = ()
        self.next = self.join
        self.heard_at = world.now

    def step(self) -> None:
        try:
            self.next()
            self.heard_at = self.world.now
        except RebalanceInProgress:
            self.heard_at = self.world.now
            self.next = self.join
        except Fault:
            self.give_up_all()

    def give_up_all(self) -> None:
        self.works_on, self.member_id, self.next = (), "", self.join

    def join(self) -> None:
        if self.is_eager:
            self.works_on = ()
        turn = self.world.turn()
        self.world.names += 1
        wanted = Joining(
            who=MemberId(self.member_id),
            client_id=self.name,
            client_host="",
            session_timeout_ms=int(SESSION_S * 1000),
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols={"range": self._subscription()},
        )
        self.world.groups.join("g", wanted, "join", f"{self.name}-{self.world.names}", turn)
        self.world.write(turn)
        ((_, joined),) = turn.answers
        assert isinstance(joined, Joined)
        self.member_id, self.generation, self.next = joined.member_id, joined.generation, self.sync

    def _subscription(self) -> bytes:
        topics = self.world.topics
        owned = [(topics.name_of(topic), some) for topic, some in by_topic(self.works_on).items()]
        value = EmbeddedSubscription(
            topics=("t",),
            owned_partitions=tuple(
                EmbeddedPartitions(topic=name, partitions=some) for name, some in owned if name is not None
            ),
        )
        return pack(">h", VERSION) + encode(value, VERSION)

    def sync(self) -> None:
        turn = self.world.turn()
        wanted = Syncing(who=MemberId(self.member_id), generation=self.generation, assignments={})
        self.world.groups.sync("g", wanted, "sync", turn)
        ((_, synced),) = turn.answers
        assert isinstance(synced, Synced)
        got = assignment_of(synced.assignment, self.world.topics)
        gives_up = without(self.works_on, got)
        self.works_on = got
        self.next = self.join if gives_up else self.heartbeat

    def heartbeat(self) -> None:
        self.world.groups.heartbeat("g", MemberId(self.member_id), self.generation, self.world.turn())


class MixedWorld(World):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.old: dict[str, OldClient] = {}
        self.stays = Client("stays", ("t",))
        self.hear_of_who_stays()

    def hear_of_who_stays(self) -> None:
        self.stays.obey()
        self.beat(self.stays)

    def happen(self) -> None:
        chance = self.chance
        match chance.randrange(6):
            case 0 if len(self.old) < 4:
                self.names += 1
                name = f"o{self.names}"
                self.old[name] = OldClient(self, name, is_eager=chance.random() < 0.5)
            case 1 if self.old and chance.random() < 0.3:
                del self.old[chance.choice(list(self.old))]  # it dies
            case 2 | 3 if self.old:
                chance.choice(list(self.old.values())).step()
            case 4:
                self.hear_of_who_stays()
            case _:
                super().happen()

    def elapse(self, seconds: float) -> None:
        self.hear_of_who_stays()
        for client in self.old.values():
            if self.now + seconds - client.heard_at >= SESSION_S:
                client.give_up_all()
        super().elapse(min(seconds, SESSION_S - 0.1))
        self.hear_of_who_stays()
        super().elapse(0.1)

    def working(self) -> list[tuple[str, Share]]:
        old = [(one.name, one.works_on) for one in self.old.values()]
        return [*super().working(), *old, (self.stays.name, self.stays.works_on)]


@pytest.mark.parametrize("seed", range(RUNS))
def test_never_two_owners_and_in_the_end_one_each(seed: int) -> None:
    world = MixedWorld(seed)
    for _ in range(EVENTS):
        world.happen()
        world.owners()
    for _ in range(80):  # all is well from now on
        world.elapse(0.5)
        for client in world.clients.values():
            client.obey()
            world.beat(client)
        for old in world.old.values():
            old.step()
        world.owners()
    reads = ["t", *(name for client in world.clients.values() for name in client.reads)]
    assert sorted(world.owners()) == every(world.topics, reads)
