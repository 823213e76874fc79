"""The listener for peers and the connections accepted on it: one per broker and lane, the newest replaces the older.

A broker that lost power can reconnect before TCP notices that its old connection is dead. So the old connection is
closed as soon as the new one has sent its hello. That bounds the number of connections by the number of brokers;
`PEER_CONNECTIONS_MAX` bounds those that have sent no hello yet as well.
"""

from collections.abc import Callable

from tailrace.broker.peers.accepted import PeerConnection
from tailrace.broker.peers.complaints import Complaints
from tailrace.broker.peers.events import PeerEvents, Serve, ServeClient
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
        on_connected: Callable[[BrokerId], None],
        neighbours: Callable[[], tuple[Neighbour, ...]],
        levels: OwnLevels,
    ) -> None:
        """`on_connected` is called for each broker that connects: it is up, so our own lanes to it can connect now."""
        self.me = me
        self.cluster_id = cluster_id
        self.events = events
        self.serve = serve
        self.complaints = complaints
        self.frame_max_bytes = max(settings.socket_request_max_bytes, PEER_REQUEST_MAX_BYTES)
        self.neighbours = neighbours
        self.levels = levels
        self._on_connected = on_connected
        self._listener: Listener | None = None
        self._connections: dict[PeerConnection, None] = {}
        self._by_lane: dict[tuple[BrokerId, LaneKind], PeerConnection] = {}
        self._closed = False
        self.serve_client: ServeClient | None = None  # makes the protocol that serves a door's client

    async def listen(self, net: Net, host: str, port: int) -> int:
        self._listener = await net.listen(lambda: PeerConnection(self), host, port)
        return self._listener.port

    def opened(self, connection: PeerConnection) -> None:
        self._connections[connection] = None
        if self._closed:
            connection.close_quietly()  # accepted just before the listener was closed
        elif len(self._connections) > PEER_CONNECTIONS_MAX:
            connection.close(f"too many peer connections: there are {PEER_CONNECTIONS_MAX} already")

    def greeted(self, connection: PeerConnection) -> None:
        if connection.greeted.joins:
            return
        key = (connection.broker, connection.lane)
        older = self._by_lane.get(key)
        self._by_lane[key] = connection
        if older is not None:
            older.close_quietly()
        self._on_connected(connection.broker)

    def handed_over(self, connection: PeerConnection) -> None:
        """The connection is a client's from here on."""
        self._connections.pop(connection, None)

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
