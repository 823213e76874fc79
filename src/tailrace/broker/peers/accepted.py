"""A connection accepted from a peer: the hello first, then only the messages that its lane is for.

A control lane carries Raft messages, which get no answer, and calls: each call runs in its own task and is answered
when that ends. The fetch and catch-up lanes carry Fetch, which the broker answers in order. Any other frame closes the
connection; a hello that is refused gets an answer with the reason first.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tailrace import __version__
from tailrace.broker.peers.framing import FETCH_KEY, FETCH_VERSIONS, FLEXIBLE_SINCE, answer_frame
from tailrace.broker.peers.hello import Greeted, accept, refusal
from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import why_incompatible
from tailrace.broker.peers.outgoing import CONNECT_MAX_S, LINGER_MAX_S, SILENCE_MAX_S
from tailrace.broker.peers.raft_codec import unpack
from tailrace.broker.peers.unreachable import Refused
from tailrace.model.faults import Fault, NotController
from tailrace.model.ids import NO_BROKER, BrokerId, Id
from tailrace.model.limits import (
    PEER_CALLS_UNDER_WAY_MAX,
    PEER_CONTROL_UNSENT_MAX_BYTES,
    PEER_FETCH_UNSENT_MAX_BYTES,
    PEER_HELLO_MAX_BYTES,
)
from tailrace.ports.disk import Buffer
from tailrace.ports.net import give_up_after
from tailrace.wire.compile import decode_whole
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.framing import FramedProtocol, FrameError
from tailrace.wire.headers import read_request_header
from tailrace.wire.messages import Pair
from tailrace.wire.messages.peers import HELLO_KEY, JOIN_CLUSTER_KEY, PEER_MESSAGES, RAFT_MESSAGES_KEY
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tailrace.wire.primitives import WireError

if TYPE_CHECKING:
    from tailrace.broker.peers.acceptor import Acceptor


class PeerConnection(FramedProtocol):
    """`broker`, `directory` and `lane` are known from the hello on; `PeerEvents` sees no connection before that."""

    def __init__(self, acceptor: "Acceptor") -> None:
        super().__init__(PEER_HELLO_MAX_BYTES)
        self._acceptor = acceptor
        self._greeted: Greeted | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._ended = asyncio.Event()
        self._address: tuple[str, object] = ("?", "?")

    @property
    def greeted(self) -> Greeted:
        assert self._greeted is not None, "no hello has arrived yet"
        return self._greeted

    @property
    def broker(self) -> BrokerId:
        return self.greeted.voter.broker

    @property
    def directory(self) -> Id:
        return self.greeted.voter.directory

    @property
    def lane(self) -> LaneKind:
        return self.greeted.lane

    # Transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._address = tuple(transport.get_extra_info("peername", self._address)[:2])
        give_up_after(transport, SILENCE_MAX_S)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(CONNECT_MAX_S, self.close, f"no hello within {CONNECT_MAX_S:.0f} s")
        self._acceptor.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.paused = True
        self.transport = None
        self._stop_timer()
        self._ended.set()
        self._acceptor.lost(self, self._greeted)

    def frame_refused(self, error: FrameError) -> None:
        self.close(str(error))

    def frame_received(self, frame: memoryview) -> None:
        try:
            key, version, number, _, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
            if self._greeted is None:
                self._greet(key, version, number, frame[at:])
            elif key == RAFT_MESSAGES_KEY:
                self._raft_messages(version, frame[at:])
            elif key == FETCH_KEY:
                self._fetch(frame, at, version, number)
            else:
                self._call(key, version, number, frame[at:])
        except WireError as error:
            self.close(str(error))

    # The hello

    def _greet(self, key: int, version: int, number: int, body: memoryview) -> None:
        if key != HELLO_KEY:
            raise WireError(f"API {key} before a hello")
        me, cluster_id, levels = self._acceptor.me, self._acceptor.cluster_id, self._acceptor.levels
        try:
            if version != 0:
                raise Refused(Error.UNSUPPORTED_VERSION, f"unsupported version {version} of the hello, only 0 exists")
            greeted = accept(decode_whole(PeerHello, 0, body), me, cluster_id, levels.in_force())
            if greeted.lane is LaneKind.CLIENT and self._acceptor.serve_client is None:
                raise Refused(Error.BROKER_NOT_AVAILABLE, "this broker does not serve clients yet")
        except Refused as refused:
            self.send([answer_frame(refusal(refused, me, cluster_id), 0, number)])
            self.close(str(refused))
            return
        self._greeted = greeted
        self._stop_timer()
        self._frame_max_bytes = self._acceptor.frame_max_bytes
        neighbours = () if greeted.joins else self._acceptor.neighbours()
        answer = PeerHelloAnswer(
            cluster_id=cluster_id,
            broker_id=me.broker,
            directory_id=me.directory,
            neighbours=neighbours,
            first_level=levels.supported.first,
            last_level=levels.supported.last,
            release=__version__,
        )
        self.send([answer_frame(answer, 0, number)])
        if greeted.lane is LaneKind.CLIENT:
            self._become_client_connection()
        else:
            self._acceptor.greeted(self)

    def _become_client_connection(self) -> None:
        """From here on the connection carries Kafka's protocol, as one that a client has opened."""
        transport, self.transport = self.transport, None
        if transport is None or self._acceptor.serve_client is None:
            return
        self.paused = True
        self._ended.set()
        self._acceptor.handed_over(self)
        client = self._acceptor.serve_client()
        transport.set_protocol(client)
        client.connection_made(transport)

    # Messages after the hello

    def _raft_messages(self, version: int, body: memoryview) -> None:
        greeted = self.greeted
        if greeted.joins or greeted.lane is not LaneKind.CONTROL or version != 0:
            where = "from a broker that has not joined yet" if greeted.joins else f"on the {greeted.lane} lane"
            raise WireError(f"Raft messages of version {version} {where}")
        self._acceptor.events.raft_messages(greeted.voter.broker, unpack(body, greeted.voter))

    def _fetch(self, frame: memoryview, at: int, version: int, number: int) -> None:
        if self.greeted.lane is LaneKind.CONTROL or version not in FETCH_VERSIONS:
            raise WireError(f"Fetch of version {version} on the {self.greeted.lane} lane")
        self._acceptor.events.fetch(self, frame, at, version, number)

    def _call(self, key: int, version: int, number: int, body: memoryview) -> None:
        pair = PEER_MESSAGES.get(key)
        if pair is None or key == HELLO_KEY or self.greeted.lane is not LaneKind.CONTROL:
            raise WireError(f"API {key} on the {self.greeted.lane} lane")
        if version not in pair.versions:
            raise WireError(f"{pair.name} has no version {version}, only {pair.versions}")
        if self.greeted.joins and key != JOIN_CLUSTER_KEY:
            raise WireError(f"{pair.name} from a broker that has not joined yet")
        if len(self._tasks) >= PEER_CALLS_UNDER_WAY_MAX:
            raise WireError(f"too many calls: {len(self._tasks)} are still unanswered")
        request: Any = decode_whole(pair.request, version, body)
        task = asyncio.get_running_loop().create_task(self._serve(pair, version, number, request))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _serve(self, pair: Pair, version: int, number: int, request: object) -> None:
        try:
            answer = await self._acceptor.serve(self.greeted.caller, request)
            assert type(answer) is pair.response, f"{answer} does not answer {pair.name}"
            frame = answer_frame(answer, version, number)
        except Fault as fault:
            hint = fault.controller if isinstance(fault, NotController) else NO_BROKER
            refused = pair.response(error_code=error_of(fault), error_message=str(fault), controller=hint)
            frame = answer_frame(refused, version, number)
        except Exception as error:
            context = {"message": f"bug while serving {pair.name} of broker {self.broker}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            failed = pair.response(
                error_code=Error.UNKNOWN_SERVER_ERROR, error_message=f"{pair.name} failed with an internal error"
            )
            frame = answer_frame(failed, version, number)
        self.send([frame])

    # Sending and closing

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send whole frames; the caller must not change them afterwards. Dropped when the connection is closed."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        transport.writelines(buffers)
        control = self._greeted is None or self._greeted.lane is LaneKind.CONTROL
        unsent_max = PEER_CONTROL_UNSENT_MAX_BYTES if control else PEER_FETCH_UNSENT_MAX_BYTES
        if (unsent := transport.get_write_buffer_size()) > unsent_max:
            self.close(f"the peer does not read: {unsent} bytes are unsent")
            transport.abort()

    def level_raised(self, level: int) -> None:
        """Close the connection if the peer does not support `level`, which has just come into force."""
        if self._greeted is not None and (why := why_incompatible(self._greeted.hello, level)):
            self.close(why)

    def close(self, why: str) -> None:
        """Close because of something the peer did, and log why."""
        if self.transport is not None and not self.transport.is_closing():
            self._acceptor.complaints.log_closing(*self._address, why)
            self.close_quietly()

    def close_quietly(self) -> None:
        """Close once everything is sent, without a log line."""
        self.paused = True
        self._stop_timer()
        if self.transport is not None:
            self.transport.close()
            self._timer = asyncio.get_running_loop().call_later(LINGER_MAX_S, self.transport.abort)

    async def wait_ended(self) -> None:
        await self._ended.wait()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cancel_calls(self) -> None:
        for task in self._tasks:
            task.cancel()
