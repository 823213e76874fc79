"""All other brokers, as one broker reaches them: a control lane to each that is known, more lanes where it fetches.

Raft's messages are gathered: what all partitions say to one peer in one turn of the loop goes in one frame. What cannot
be sent is dropped, and repeated by Raft where it matters. Nothing here is about partitions: the cost of a quiet
cluster grows with the number of brokers.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from tailrace import __version__
from tailrace.broker.peers.acceptor import Acceptor
from tailrace.broker.peers.complaints import Complaints
from tailrace.broker.peers.events import PeerEvents, Serve
from tailrace.broker.peers.framing import raft_frame_head
from tailrace.broker.peers.lane import Lane
from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import OwnLevels
from tailrace.broker.peers.raft_codec import pack
from tailrace.broker.peers.unreachable import Unreachable
from tailrace.cluster.features import message_version
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.limits import RAFT_MESSAGES_GATHERED_MAX, RAFT_MESSAGES_PER_FRAME_MAX
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.raft.messages import Message
from tailrace.raft.voters import Voter
from tailrace.wire.messages.peers.hello import Neighbour, PeerHello

NEIGHBOURS_TOLD_MAX: Final = 12  # a hello is short


class Peers:
    def __init__(
        self,
        ports: Ports,
        settings: Settings,
        me: Voter,
        cluster_id: str,
        events: PeerEvents,
        serve: Serve,
        levels: OwnLevels,
    ) -> None:
        self._ports = ports
        self._me = me
        self._cluster_id = cluster_id
        self._events = events
        self._levels = levels
        self._complaints = Complaints(ports.clock)
        self._acceptor = Acceptor(
            me, cluster_id, settings, events, serve, self._complaints, self._met, self._neighbours, levels
        )
        self._known: dict[BrokerId, tuple[str, int]] = {}
        self._lanes: dict[tuple[BrokerId, LaneKind], Lane] = {}
        self._gathered: dict[BrokerId, list[tuple[TopicPartition, Message]]] = {}
        self._flush_due: asyncio.Handle | None = None

    async def listen(self, host: str, port: int) -> int:
        """Accept peers; the real port. OSError when it cannot be had."""
        return await self._acceptor.listen(self._ports.net, host, port)

    # Who is where

    def know(self, broker: BrokerId, host: str, port: int) -> None:
        """Keep a control lane to a broker. All its lanes follow when it moves."""
        if broker == self._me.broker or self._known.get(broker) == (host, port):
            return
        self._known[broker] = (host, port)
        self.lane(broker, LaneKind.CONTROL)
        for kind in LaneKind:
            if (lane := self._lanes.get((broker, kind))) is not None:
                lane.lead_to(host, port)

    def forget(self, broker: BrokerId) -> None:
        self._known.pop(broker, None)
        for kind in LaneKind:
            self.drop_lane(broker, kind)

    def lane(self, broker: BrokerId, kind: LaneKind) -> Lane:
        """Opened when first asked for, and kept open. To a broker that is not known yet it leads once it is."""
        assert broker != self._me.broker, "a broker does not connect to itself"
        lane = self._lanes.get((broker, kind))
        if lane is None:
            hello = PeerHello(
                cluster_id=self._cluster_id,
                broker_id=self._me.broker,
                directory_id=self._me.directory,
                to=broker,
                lane=kind,
                release=__version__,
                first_level=self._levels.supported.first,
                last_level=self._levels.supported.last,
            )
            lane = self._lanes[broker, kind] = Lane(
                self._ports, hello, self._events, self._complaints, self._told_of, self._levels.in_force
            )
            if broker in self._known:
                lane.lead_to(*self._known[broker])
        return lane

    def drop_lane(self, broker: BrokerId, kind: LaneKind) -> None:
        lane = self._lanes.pop((broker, kind), None)
        if lane is not None:
            lane.close()

    def _met(self, broker: BrokerId) -> None:
        for kind in LaneKind:
            if (lane := self._lanes.get((broker, kind))) is not None:
                lane.try_now()

    def _neighbours(self) -> tuple[Neighbour, ...]:
        some = islice(self._known.items(), NEIGHBOURS_TOLD_MAX)
        return tuple(Neighbour(broker_id=one, host=host, port=port) for one, (host, port) in some)

    def _told_of(self, neighbours: Sequence[Neighbour]) -> None:
        """One that was away for long may know none of those that lead now."""
        for one in neighbours:
            if BrokerId(one.broker_id) not in self._known:
                self.know(BrokerId(one.broker_id), one.host, one.port)

    def level_raised(self) -> None:
        """Close all connections with brokers that do not support the level which is in force now."""
        level = self._levels.in_force()
        self._acceptor.level_raised(level)
        for lane in list(self._lanes.values()):
            lane.level_raised(level)

    @property
    def incompatible(self) -> str:
        """Why other brokers refuse this one, if it does not support the level of metadata.version in force; or ""."""
        return next((lane.incompatible for lane in self._lanes.values() if lane.incompatible), "")

    @property
    def live(self) -> tuple[BrokerId, ...]:
        """Brokers whose control lane is up, sorted."""
        up = [broker for (broker, kind), lane in self._lanes.items() if kind is LaneKind.CONTROL and lane.up]
        return tuple(sorted(up))

    # What is said

    def send(self, broker: BrokerId, key: TopicPartition, message: Message) -> None:
        """One of Raft's messages, in one frame with all others to this broker in this turn of the loop."""
        lane = self._lanes.get((broker, LaneKind.CONTROL))
        if lane is None or not lane.up:
            return
        gathered = self._gathered.setdefault(broker, [])
        if len(gathered) >= RAFT_MESSAGES_GATHERED_MAX:
            return
        gathered.append((key, message))
        if self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = None
        gathered, self._gathered = self._gathered, {}
        for broker, messages in gathered.items():
            lane = self._lanes.get((broker, LaneKind.CONTROL))
            if lane is not None:
                _send_all(lane, messages)

    async def call(self, broker: BrokerId, request: object, timeout_s: float = 10.0) -> Any:
        """The declared answer to a declared request; Unreachable when the lane is or goes down, or time is up.

        The error in an answer is the caller's to look at. A broker that answers nothing at all for a while is taken for
        gone: its control lane is opened anew.
        """
        lane = self._lanes.get((broker, LaneKind.CONTROL))
        if lane is None:
            raise Unreachable(f"nobody knows where broker {broker} is")
        version = message_version(self._levels.in_force(), type(request).__name__)
        return await lane.call(request, version, timeout_s)

    async def close(self) -> None:
        """Send what was gathered, then close everything. Nobody is told of lanes that go down now."""
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush()
        lanes, self._lanes = list(self._lanes.values()), {}
        self._known.clear()
        for lane in lanes:
            lane.close()
        self._acceptor.close()
        for lane in lanes:
            await lane.wait_closed()
        await self._acceptor.wait_closed()


def _send_all(lane: Lane, messages: list[tuple[TopicPartition, Message]]) -> None:
    for at in range(0, len(messages), RAFT_MESSAGES_PER_FRAME_MAX):
        body = pack(messages[at : at + RAFT_MESSAGES_PER_FRAME_MAX])
        lane.send([raft_frame_head(body), body])
