"""`tailrace.testing.proxy`: the network between brokers, with plain sockets in the brokers' place."""

import select
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tailrace.model.ids import NO_ID
from tailrace.testing.flows import FLOW_BUFFER_BYTES
from tailrace.testing.proxy import Network, broker_that_speaks
from tailrace.wire.compile import encode
from tailrace.wire.headers import request_header
from tailrace.wire.messages.peers.hello import PeerHello

DEADLINE_S = 20.0
SILENCE_S = 0.2  # what is cut has to stay silent for so long; a byte that passes takes far less
CALLED_ID = 7


def hello(broker_id: int) -> bytes:
    body = encode(PeerHello(cluster_id="c", broker_id=broker_id, directory_id=NO_ID, to=CALLED_ID, lane=1), 0)
    frame = request_header(1000, 0, 1, "peer", True) + body
    return len(frame).to_bytes(4, "big") + frame


def read(one: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count and (more := one.recv(count - len(got))):
        got += more
    return got


def is_silent(one: socket.socket) -> bool:
    ready, _, _ = select.select([one], [], [], SILENCE_S)
    return not ready


def send_until_it_waits(one: socket.socket, block: bytes) -> int:
    """Send 0, 1, …, 255, 0, … as far as it goes without waiting; how many bytes that were."""
    one.setblocking(False)
    sent = 0
    while sent < 1024 * len(block):
        try:
            sent += one.send(block[sent % 256 :])
        except BlockingIOError:
            return sent
    raise AssertionError(f"{sent} bytes, and no end of room")


class Stage:
    """A network with one broker behind it, and whoever calls it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.broker = socket.create_server(("127.0.0.1", 0))
        self.broker.settimeout(DEADLINE_S)
        self.port = network.open_door(CALLED_ID, self.broker.getsockname()[1])

    def call(self, first: bytes) -> socket.socket:
        caller = socket.create_connection(("127.0.0.1", self.port), DEADLINE_S)
        caller.sendall(first)
        return caller

    def accept(self) -> socket.socket:
        called, _ = self.broker.accept()
        called.settimeout(DEADLINE_S)
        return called

    def connect(self, broker_id: int) -> tuple[socket.socket, socket.socket]:
        caller = self.call(hello(broker_id))
        called = self.accept()
        assert read(called, len(hello(broker_id))) == hello(broker_id)
        return caller, called


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Network() as network:
        stage = Stage(network)
        with closing(stage.broker):
            yield stage


def test_the_first_frame_says_who_speaks() -> None:
    assert broker_that_speaks(memoryview(hello(3))[4:]) == 3
    assert broker_that_speaks(memoryview(hello(-1))[4:]) is None
    assert broker_that_speaks(memoryview(hello(3))[4:20]) is None
    assert broker_that_speaks(memoryview(b"GET / HTTP/1.1")) is None
    assert broker_that_speaks(memoryview(b"\x03\xe8\x00\x63" + hello(3)[8:])) is None  # a version nobody knows
    assert broker_that_speaks(memoryview(b"")) is None


def test_bytes_pass_both_ways_unchanged(stage: Stage) -> None:
    caller, called = stage.connect(3)
    caller.sendall(b"there")
    called.sendall(b"and back")
    assert read(called, 5) == b"there"
    assert read(caller, 8) == b"and back"


def test_a_hello_in_single_bytes_arrives(stage: Stage) -> None:
    caller = stage.call(b"")
    for byte in hello(3):
        caller.sendall(bytes([byte]))
    called = stage.accept()
    assert read(called, len(hello(3))) == hello(3)


@pytest.mark.parametrize("first", [b"\xff\xff\xff\xff nonsense", b"\x00\x00\x00\x03abc", hello(-1)])
def test_who_cannot_be_told_apart_is_passed_on(stage: Stage, first: bytes) -> None:
    """A joiner has no id yet, and nonsense is for the broker to refuse."""
    stage.network.cut((3, CALLED_ID), (CALLED_ID, 3))
    with stage.call(first):
        assert read(stage.accept(), len(first)) == first


def test_what_is_cut_is_silent_and_heals(stage: Stage) -> None:
    caller, called = stage.connect(3)
    other_caller, other_called = stage.connect(4)
    stage.network.cut((3, CALLED_ID), (CALLED_ID, 3))
    caller.sendall(b"late")
    called.sendall(b"answer")
    assert is_silent(called)
    assert is_silent(caller)
    other_caller.sendall(b"now")
    assert read(other_called, 3) == b"now"
    stage.network.heal()
    assert read(called, 4) == b"late"
    assert read(caller, 6) == b"answer"


def test_one_way_only(stage: Stage) -> None:
    caller, called = stage.connect(3)
    stage.network.cut((3, CALLED_ID))
    caller.sendall(b"late")
    called.sendall(b"heard")
    assert read(caller, 5) == b"heard"
    assert is_silent(called)
    stage.network.heal()
    assert read(called, 4) == b"late"


def test_cuts_add_up(stage: Stage) -> None:
    caller, called = stage.connect(3)
    stage.network.cut((3, CALLED_ID))
    stage.network.cut((4, CALLED_ID))
    caller.sendall(b"late")
    assert is_silent(called)


def test_a_new_connection_is_held_until_it_heals(stage: Stage) -> None:
    stage.network.cut((3, CALLED_ID), (CALLED_ID, 3))
    caller = stage.call(hello(3) + b"more")
    assert is_silent(stage.broker)
    assert is_silent(caller)
    stage.network.heal()
    called = stage.accept()
    assert read(called, len(hello(3)) + 4) == hello(3) + b"more"
    called.sendall(b"welcome")
    assert read(caller, 7) == b"welcome"


def test_a_caller_that_gave_up_never_arrives(stage: Stage) -> None:
    stage.network.cut((3, CALLED_ID))
    stage.call(hello(3)).close()
    stage.network.heal()
    caller, _ = stage.connect(4)  # the next to be accepted is this one
    assert caller


@pytest.mark.parametrize("ends_first", ["caller", "called"])
def test_the_end_of_one_side_is_told_to_the_other(stage: Stage, ends_first: str) -> None:
    caller, called = stage.connect(3)
    one, other = (caller, called) if ends_first == "caller" else (called, caller)
    one.sendall(b"last words")
    one.close()
    assert read(other, 11) == b"last words"
    assert other.recv(1) == b""


def test_half_an_end_leaves_the_other_half_open(stage: Stage) -> None:
    caller, called = stage.connect(3)
    caller.shutdown(socket.SHUT_WR)
    assert called.recv(1) == b""
    called.sendall(b"still here")
    assert read(caller, 10) == b"still here"


def test_nobody_is_told_of_an_end_behind_a_cut(stage: Stage) -> None:
    caller, called = stage.connect(3)
    stage.network.cut((3, CALLED_ID), (CALLED_ID, 3))
    called.close()
    assert is_silent(caller)
    stage.network.heal()
    assert caller.recv(1) == b""


def test_a_broker_that_is_not_there_resets_its_callers(stage: Stage) -> None:
    stage.broker.close()
    caller = stage.call(hello(3))
    with pytest.raises(ConnectionResetError):
        caller.recv(1)


def test_a_reset_is_passed_on(stage: Stage) -> None:
    caller, called = stage.connect(3)
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    caller.close()
    with pytest.raises(ConnectionResetError):
        called.recv(1)


def test_what_waits_is_bounded_and_all_arrives(stage: Stage) -> None:
    """A sender behind a cut fills our buffer and the system's, then waits; healed, every byte is there, in order."""
    caller, called = stage.connect(3)
    stage.network.cut((3, CALLED_ID))
    sent = send_until_it_waits(caller, bytes(range(256)) * (FLOW_BUFFER_BYTES // 256))
    stage.network.heal()
    got = read(called, sent)
    assert len(got) == sent
    assert got == (bytes(range(256)) * (sent // 256 + 1))[:sent]


def test_it_is_fast_enough_for_chaos(stage: Stage) -> None:
    caller, called = stage.connect(3)
    total, block, got = 64 * 1024 * 1024, bytes(1024 * 1024), 0
    room = bytearray(1024 * 1024)
    caller.setblocking(False)
    begin, sent = time.perf_counter(), 0
    while got < total:
        ready, can, _ = select.select([called], [caller] if sent < total else [], [], DEADLINE_S)
        assert ready or can
        if can:
            sent += caller.send(block[: total - sent])
        if ready:
            got += called.recv_into(room)
    rate = total / (time.perf_counter() - begin)
    assert rate > 20e6, f"{rate / 1e6:.0f} MB/s"


def test_closing_ends_every_connection(stage: Stage) -> None:
    caller, called = stage.connect(3)
    stage.network.close()
    assert caller.recv(1) == b""
    assert called.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", stage.port), DEADLINE_S)
