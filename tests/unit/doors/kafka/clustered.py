"""Several brokers inside the test's own event loop, joined to one cluster, and a client connected to each."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.ids import Id
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, ReplicaAssignment
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import Served, given, serving

BROKERS_USUAL: Final = 3


class Clustered:
    """Running brokers, numbered from 1."""

    def __init__(self, served: Sequence[Served]) -> None:
        self._served = served

    def __getitem__(self, broker: int) -> Served:
        return self._served[broker - 1]

    @property
    def ids(self) -> range:
        return range(1, len(self._served) + 1)

    @property
    def controller(self) -> int:
        return next(one for one in self.ids if self[one].node.is_controller)

    async def make_topic(self, name: str, *replicas: Sequence[int]) -> Id:
        """A topic whose partitions are on these brokers, the first of each to lead; known, led and followed."""
        places = replicas or (tuple(self.ids),)
        assigned = tuple(ReplicaAssignment(partition=index, broker_ids=tuple(one)) for index, one in enumerate(places))
        topic = NewTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assigned)
        answer = await self[1].call(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 7)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        await until(lambda: all(self._knows(one, name, places) for one in self.ids))
        topic_id: Id = answer.topics[0].topic_id
        return topic_id

    def _knows(self, broker: int, name: str, places: Sequence[Sequence[int]]) -> bool:
        node = self[broker].node
        topic = node.hosted.image.topics.get(name)
        if topic is None or len(topic.partitions) < len(places):
            return False
        states = node.control.leaders.of(topic)
        led = [one for one in node.hosted.of_topic(name) if one.leads]
        return all(peer.end >= 0 for one in led for peer in one.replica.peers()) and all(
            (state.leader, list(state.in_sync)) == (place[0], list(place))
            for state, place in zip(states, places, strict=True)
        )

    def replica(self, broker: int, topic: str, partition: int = 0) -> Partition:
        return self[broker].node.hosted.find(topic, partition)

    def leader(self, broker: int, topic: str, partition: int = 0) -> int:
        """The leader of a partition in a broker's Metadata response; -1: none."""
        node = self[broker].node
        return node.control.leaders.one(node.hosted.image.topics[topic], partition).leader

    async def move(self, topic: str, to: int, partition: int = 0) -> None:
        """Make a broker the leader, and wait until every broker knows it. On a busy machine another broker may be
        elected first, so this retries."""

        def led() -> bool:
            for broker in self.ids:
                replica = self.replica(broker, topic, partition)
                if broker != to and replica.leads and not replica.replica.hands_over:
                    self[broker].node.control.duties.hand_over(replica, self[to].node.broker_id)
            return all(self.leader(one, topic, partition) == to for one in self.ids)

        await until(led)

    async def caught_up(self, topic: str, end: int, *brokers: int) -> None:
        """Wait until the high watermark of a topic's first partition is `end` on these brokers."""
        await until(lambda: all(self.replica(one, topic).high_watermark >= end for one in brokers or self.ids))


@asynccontextmanager
async def clustering(folder: Path, brokers: int = BROKERS_USUAL, **settings: Any) -> AsyncIterator[Clustered]:
    """Broker n is in rack r<n>."""
    async with AsyncExitStack() as stack:
        served: list[Served] = []
        for number in range(1, brokers + 1):
            join = {} if not served else {"join": f"127.0.0.1:{served[0].node.kafka_port}"}
            own = {"broker_rack": f"r{number}", "controlled_shutdown_enable": False, **join, **settings}
            served.append(await stack.enter_async_context(serving(folder / f"b{number}", **own)))
        cluster = Clustered(served)
        await until(lambda: all(len(one.node.hosted.image.live) == brokers for one in served))
        yield cluster


def with_cluster(
    brokers: int = BROKERS_USUAL, **settings: Any
) -> Callable[[Callable[[Clustered], Awaitable[None]]], Callable[[Path], None]]:
    """A test that gets a fresh cluster."""
    return given(lambda folder: clustering(folder, brokers, **settings))
