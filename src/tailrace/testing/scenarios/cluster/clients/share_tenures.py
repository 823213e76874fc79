"""Which leader, in which tenure of a share partition, answers a request; read from the brokers' own state.

A request is answered in a tenure for certain if the same one was there when it was sent and when it was answered.
"""

from collections.abc import Sequence

from tailrace.broker.queues.led_share import LedShare
from tailrace.model.ids import TopicPartition
from tailrace.queues.state import ShareKey
from tailrace.testing.scenarios.cluster.invariants.share_history import Exchange
from tailrace.testing.scenarios.cluster.invariants.share_partitions import SharePartitionObserver
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World


class ShareTenures:
    def __init__(self, world: World, servers: Sequence[Server], observer: SharePartitionObserver) -> None:
        self._world = world
        self._servers = servers
        self._observer = observer

    def begin(self, host: str, group: str, member: str) -> "OpenExchange":
        """A request is about to be sent."""
        return OpenExchange(self, next(one for one in self._servers if one.name == host), group, member)

    def now(self) -> float:
        return self._world.loop.time()

    def of(self, server: Server, group: str) -> dict[TopicPartition, int]:
        if server.node is None or not server.runs:
            return {}
        return {
            TopicPartition(share.key.topic_id, share.key.partition): self._observer.tenure(share)
            for share in server.node.coordinators.share_partitions.all
            if share.key.group == group and share.is_current
        }

    @property
    def count(self) -> int:
        return self._observer.tenures

    def number_of(self, group: str, place: TopicPartition) -> int:
        return self._observer.tenures_of(group, place)

    def is_finished(self, key: ShareKey) -> bool:
        """Whether every record of the partition is finished, as its leader sees it."""
        share = self._led(key)
        return share is not None and share.machine.start >= share.partition.high_watermark

    def progress(self, key: ShareKey) -> str:
        share = self._led(key)
        if share is None:
            return f"{key} is not loaded"
        return f"{key}: {list(share.machine.runs)} up to {share.partition.high_watermark}"

    def _led(self, key: ShareKey) -> LedShare | None:
        running = [one.node.coordinators.share_partitions for one in self._servers if one.node is not None and one.runs]
        led = (share for shares in running for share in shares.all if share.key == key and share.is_current)
        return next(led, None)


class OpenExchange:
    """A request without its response."""

    def __init__(self, tenures: ShareTenures, server: Server, group: str, member: str) -> None:
        self._tenures = tenures
        self._server = server
        self._group = group
        self._member = member
        self._tenures_before = tenures.of(server, group)
        self._wall_ms = server.machine.clock.wall_ms()
        self.sent = tenures.now()

    def end(self, place: TopicPartition) -> Exchange:
        """The response has arrived."""
        clock = self._server.machine.clock
        tenure = self._tenures_before.get(place)
        return Exchange(
            member=self._member,
            sent=self.sent,
            received=self._tenures.now(),
            tenure=tenure if tenure == self._tenures.of(self._server, self._group).get(place) else None,
            sent_wall_ms=self._wall_ms if clock.jumped_at < self.sent else None,
            highest_wall_ms=clock.highest_wall_ms,
            clock_set_at=clock.jumped_at,
        )
