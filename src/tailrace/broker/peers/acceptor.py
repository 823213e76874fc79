"""The peers' port: who is connected to it. Each broker has one connection a lane; a newer one takes its place.

A broker that lost its power comes back before TCP notices that the old connection leads nowhere. So the old one goes
when the new one is greeted; and so the number of connections is bounded by that of brokers, and by a limit beside.
"""

from collections.abc import Callable

from tailrace.broker.peers.accepted import PeerConnection
from tailrace.broker.peers.complaints import Complaints
from tailrace.broker.peers.events import PeerEvents, Serve
from tailrace.broker.peers.hello import Greeted
from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import OwnLevels
from tailrace.model.ids import BrokerId
from tailrace.model.limits import PEER_CONNECTIONS_MAX, PEER_REQUEST_MAX_BYTES
from tailrace.model.settings import Settings
from tailrace.ports import Listener, Net
from tailrace.raft.voters import Voter
from tailrace.wire.messages.peers.hello import Neighbour


class Acceptor:
    def __init__(
        self,
        me: Voter,
        cluster_id: str,
        settings: Settings,
        events: PeerEvents,
        serve: Serve,
        complaints: Complaints,
        met: Callable[[BrokerId], None],
        neighbours: Callable[[], tuple[Neighbour, ...]],
        levels: OwnLevels,
    ) -> None:
        """`met` hears of each broker that has connected: it is there, so it can be connected to."""
        self.me = me
        self.cluster_id = cluster_id
        self.events = events
        self.serve = serve
        self.complaints = complaints
        self.frame_max_bytes = max(settings.socket_request_max_bytes, PEER_REQUEST_MAX_BYTES)
        self.neighbours = neighbours
        self.levels = levels
        self._met = met
        self._listener: Listener | None = None
        self._connections: dict[PeerConnection, None] = {}
        self._by_lane: dict[tuple[BrokerId, LaneKind], PeerConnection] = {}
        self._closed = False

    async def listen(self, net: Net, host: str, port: int) -> int:
        self._listener = await net.listen(lambda: PeerConnection(self), host, port)
        return self._listener.port

    def opened(self, connection: PeerConnection) -> None:
        self._connections[connection] = None
        if self._closed:
            connection.close_quietly()  # it had been accepted when we stopped to listen
        elif len(self._connections) > PEER_CONNECTIONS_MAX:
            connection.close(f"there are {PEER_CONNECTIONS_MAX} connections of peers already")

    def greeted(self, connection: PeerConnection) -> None:
        if connection.greeted.joins:
            return
        key = (connection.broker, connection.lane)
        older = self._by_lane.get(key)
        self._by_lane[key] = connection
        if older is not None:
            older.close_quietly()
        self._met(connection.broker)

    def level_raised(self, level: int) -> None:
        for connection in list(self._connections):
            connection.level_raised(level)

    def lost(self, connection: PeerConnection, greeted: Greeted | None) -> None:
        self._connections.pop(connection, None)
        if greeted is None or greeted.joins:
            return
        if self._by_lane.get((greeted.voter.broker, greeted.lane)) is connection:
            del self._by_lane[greeted.voter.broker, greeted.lane]
        if greeted.lane is not LaneKind.CONTROL and not self._closed:
            self.events.fetch_connection_lost(connection)

    def close(self) -> None:
        self._closed = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.cancel_calls()
            connection.close_quietly()

    async def wait_closed(self) -> None:
        for connection in list(self._connections):
            await connection.wait_ended()
