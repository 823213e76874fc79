"""A broker's connections to all others: a control lane to each known broker, fetch lanes to those it fetches from.

Raft messages are batched: what all partitions send to one peer in one turn of the loop goes in one frame. Messages that
cannot be sent are dropped; Raft repeats those that matter. Nothing here is kept per partition, so the cost of an idle
cluster grows with the number of brokers only.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from tailrace import __version__
from tailrace.broker.peers.acceptor import Acceptor
from tailrace.broker.peers.client_opening import ClientOpening
from tailrace.broker.peers.complaints import Complaints
from tailrace.broker.peers.events import PeerEvents, Serve, ServeClient
from tailrace.broker.peers.framing import raft_frame_head
from tailrace.broker.peers.lane import Lane
from tailrace.broker.peers.lane_kind import KEPT_LANES, LaneKind
from tailrace.broker.peers.levels import OwnLevels
from tailrace.broker.peers.outgoing import OutgoingConnection, open_connection
from tailrace.broker.peers.raft_codec import pack
from tailrace.broker.peers.unreachable import Unreachable
from tailrace.cluster.features import message_version
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.limits import PEER_CONTROL_UNSENT_MAX_BYTES, RAFT_MESSAGES_GATHERED_MAX, RAFT_MESSAGES_PER_FRAME_MAX
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.ports.net import P
from tailrace.raft.messages import Message
from tailrace.raft.voters import Voter
from tailrace.wire.messages.peers.hello import Neighbour, PeerHello

NEIGHBOURS_SENT_MAX: Final = 12  # keeps the answer to a hello short


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
            me, cluster_id, settings, events, serve, self._complaints, self._peer_connected, self._neighbours, levels
        )
        self._addresses: dict[BrokerId, tuple[str, int]] = {}
        self._lanes: dict[tuple[BrokerId, LaneKind], Lane] = {}
        self._unsent: dict[BrokerId, list[tuple[TopicPartition, Message]]] = {}
        self._flush_due: asyncio.Handle | None = None

    async def listen(self, host: str, port: int) -> int:
        """Accept peers; returns the actual port. OSError when it cannot be bound."""
        return await self._acceptor.listen(self._ports.net, host, port)

    # Addresses and lanes

    def know(self, broker: BrokerId, host: str, port: int) -> None:
        """Set the address of a broker, and keep a control lane to it. Its lanes reconnect when the address changes."""
        if broker == self._me.broker or self._addresses.get(broker) == (host, port):
            return
        self._addresses[broker] = (host, port)
        self.lane(broker, LaneKind.CONTROL)
        for kind in KEPT_LANES:
            if (lane := self._lanes.get((broker, kind))) is not None:
                lane.set_address(host, port)

    def forget(self, broker: BrokerId) -> None:
        self._addresses.pop(broker, None)
        for kind in KEPT_LANES:
            self.drop_lane(broker, kind)

    def lane(self, broker: BrokerId, kind: LaneKind) -> Lane:
        """The lane of this kind, made at the first request and kept. It connects once the address is known."""
        assert broker != self._me.broker, "a broker does not connect to itself"
        lane = self._lanes.get((broker, kind))
        if lane is None:
            lane = self._lanes[broker, kind] = Lane(
                self._ports,
                self._hello(broker, kind),
                self._events,
                self._complaints,
                self._learn_neighbours,
                self._levels.in_force,
            )
            if broker in self._addresses:
                lane.set_address(*self._addresses[broker])
        return lane

    def _hello(self, broker: BrokerId, kind: LaneKind) -> PeerHello:
        return PeerHello(
            cluster_id=self._cluster_id,
            broker_id=self._me.broker,
            directory_id=self._me.directory,
            to=broker,
            lane=kind,
            release=__version__,
            first_level=self._levels.supported.first,
            last_level=self._levels.supported.last,
        )

    def serve_clients_with(self, serve: ServeClient) -> None:
        """Serve the connections of other brokers' client lanes with the protocols that `serve` makes."""
        self._acceptor.serve_client = serve

    async def connect_client(self, broker: BrokerId, factory: Callable[[], P]) -> P:
        """Open a connection of its own to a broker, for a client; Unreachable, or Refused, when that fails."""
        address = self._addresses.get(broker)
        if address is None:
            raise Unreachable(f"the address of broker {broker} is not known")
        opening = ClientOpening(factory)
        hello = self._hello(broker, LaneKind.CLIENT)
        try:
            await open_connection(
                self._ports.net,
                *address,
                lambda: OutgoingConnection(hello, opening, PEER_CONTROL_UNSENT_MAX_BYTES, self._levels.in_force),
            )
        except BaseException:
            opening.abandon()
            raise
        return opening.protocol

    def drop_lane(self, broker: BrokerId, kind: LaneKind) -> None:
        lane = self._lanes.pop((broker, kind), None)
        if lane is not None:
            lane.close()

    def _peer_connected(self, broker: BrokerId) -> None:
        for kind in KEPT_LANES:
            if (lane := self._lanes.get((broker, kind))) is not None:
                lane.retry_now()

    def _neighbours(self) -> tuple[Neighbour, ...]:
        some = islice(self._addresses.items(), NEIGHBOURS_SENT_MAX)
        return tuple(Neighbour(broker_id=one, host=host, port=port) for one, (host, port) in some)

    def _learn_neighbours(self, neighbours: Sequence[Neighbour]) -> None:
        """A broker that was down for long may not know the address of any current leader."""
        for one in neighbours:
            if BrokerId(one.broker_id) not in self._addresses:
                self.know(BrokerId(one.broker_id), one.host, one.port)

    def level_raised(self) -> None:
        """Close all connections to brokers that do not support the metadata.version that has come into force."""
        level = self._levels.in_force()
        self._acceptor.level_raised(level)
        for lane in list(self._lanes.values()):
            lane.level_raised(level)

    @property
    def incompatible(self) -> str:
        """Why other brokers refuse this one, when it does not support the metadata.version in force; else ""."""
        return next((lane.incompatible for lane in self._lanes.values() if lane.incompatible), "")

    @property
    def live(self) -> tuple[BrokerId, ...]:
        """Brokers whose control lane is up, sorted."""
        up = [broker for (broker, kind), lane in self._lanes.items() if kind is LaneKind.CONTROL and lane.up]
        return tuple(sorted(up))

    # Sending

    def send(self, broker: BrokerId, key: TopicPartition, message: Message) -> None:
        """Send a Raft message, in one frame with all others to this broker of this turn of the loop."""
        lane = self._lanes.get((broker, LaneKind.CONTROL))
        if lane is None or not lane.up:
            return
        unsent = self._unsent.setdefault(broker, [])
        if len(unsent) >= RAFT_MESSAGES_GATHERED_MAX:
            return
        unsent.append((key, message))
        if self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = None
        unsent, self._unsent = self._unsent, {}
        for broker, messages in unsent.items():
            lane = self._lanes.get((broker, LaneKind.CONTROL))
            if lane is not None:
                _send_all(lane, messages)

    async def call(self, broker: BrokerId, request: object, timeout_s: float = 10.0) -> Any:
        """The declared answer to a declared request; Unreachable if the lane is down or lost, or at the timeout.

        The caller must check the error code in the answer. When a broker answers no call at all for `SILENCE_MAX_S`,
        its control lane reconnects.
        """
        lane = self._lanes.get((broker, LaneKind.CONTROL))
        if lane is None:
            raise Unreachable(f"the address of broker {broker} is not known")
        version = message_version(self._levels.in_force(), type(request).__name__)
        return await lane.call(request, version, timeout_s)

    async def close(self) -> None:
        """Send what is waiting, then close everything, without calling `lane_down`."""
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush()
        lanes, self._lanes = list(self._lanes.values()), {}
        self._addresses.clear()
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
