"""The hello: every reason for which either side refuses it."""

import asyncio

import pytest

from tailrace import __version__
from tailrace.broker.peers import Refused, accepted
from tailrace.broker.peers.framing import answer_frame, request_frame
from tailrace.broker.peers.hello import check_answer
from tailrace.wire.errors import Error
from tailrace.wire.framing import LENGTH_LAYOUT
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tailrace.wire.messages.peers.join_cluster import JoinClusterAnswer
from tests.unit.broker.peers.listening import Listening, hello, listening, raft_frame, with_listener
from tests.unit.broker.peers.stage import CLUSTER_ID, JOINING, voter
from tests.unit.doors.kafka.hostile import until, with_length


@with_listener
async def test_a_peer_learns_whom_it_reached(one: Listening) -> None:
    for to in (1, -1):
        _, answer = await one.greet(hello(2, to=to))
        assert answer == PeerHelloAnswer(
            cluster_id=CLUSTER_ID,
            broker_id=1,
            directory_id=voter(1).directory,
            first_level=1,
            last_level=2,
            release=__version__,
        )


@pytest.mark.parametrize(
    ("said", "error", "why"),
    [
        (hello(cluster_id="another"), Error.INCONSISTENT_CLUSTER_ID, "this is cluster the-cluster, not another"),
        (hello(to=3), Error.BROKER_NOT_AVAILABLE, "this is broker 1, not 3"),
        (hello(1), Error.DUPLICATE_BROKER_REGISTRATION, "broker id 1 is already in use by this broker"),
        (hello(1, directory_id=b"x" * 16), Error.DUPLICATE_BROKER_REGISTRATION, "broker id 1 is already in use"),
        (hello(1, cluster_id="", to=-1), Error.DUPLICATE_BROKER_REGISTRATION, "broker id 1 is already in use"),
        (hello(lane=3), Error.UNSUPPORTED_VERSION, "the client lane needs metadata.version 2, 1 is in force"),
        (hello(lane=4), Error.INVALID_REQUEST, "unknown lane 4"),
        (hello(lane=-1), Error.INVALID_REQUEST, "unknown lane -1"),
        (hello(cluster_id="", lane=1), Error.BROKER_ID_NOT_REGISTERED, "has not joined yet"),
        (hello(-1, lane=2), Error.BROKER_ID_NOT_REGISTERED, "has not joined yet"),
    ],
)
def test_a_hello_is_refused_in_words_and_logged_once(said: PeerHello, error: Error, why: str) -> None:
    async def scenario() -> None:
        async with listening() as one:
            for _ in range(3):  # as a lane that tries again
                raw, answer = await one.greet(said)
                assert answer.error_code == error
                assert why in (answer.error_message or "")
                assert await raw.closed()
            (line,) = one.logged
            assert line.startswith("closing the peer connection with 127.0.0.1:")
            assert f"{error.name}: " in line
            assert why in line
            assert one.notes.frames == []
            await one.is_well()

    asyncio.run(scenario())


@with_listener
async def test_a_hello_of_another_version_is_refused_in_words(one: Listening) -> None:
    frame = request_frame(hello(), 0, 5)
    frame[6:8] = (3).to_bytes(2, "big")
    raw = await one.say(bytes(frame))
    answer = await raw.answer()
    assert answer[5:7] == Error.UNSUPPORTED_VERSION.to_bytes(2, "big")
    assert await raw.closed()
    assert "unsupported version 3 of the hello" in one.logged[0]


@with_listener
async def test_anything_but_a_hello_first_is_refused(one: Listening) -> None:
    for frame in (raft_frame(voter(2)), bytes(request_frame(JOINING, 0, 1)), with_length(b"GET / HTTP/1.1\r\n\r\n")):
        raw = await one.say(frame)
        assert await raw.closed()
    assert [line.rpartition(": ")[2] for line in one.logged[:2]] == [
        "API 1001 before a hello",
        "API 1010 before a hello",
    ]
    assert one.notes.frames == []
    assert one.notes.callers == []


@with_listener
async def test_a_second_hello_is_refused(one: Listening) -> None:
    raw = await one.greeted()
    raw.send(bytes(request_frame(hello(), 0, 6)))
    assert await raw.closed()
    assert "API 1000 on the control lane" in one.logged[0]


@with_listener
async def test_a_joiner_may_ask_to_join_and_nothing_else(one: Listening) -> None:
    raw, answer = await one.greet(hello(-1, cluster_id="", to=-1))
    assert answer.cluster_id == CLUSTER_ID
    raw.send(bytes(request_frame(JOINING, 0, 9)))
    expected = answer_frame(JoinClusterAnswer(broker_id=7, cluster_id=CLUSTER_ID), 0, 9)
    assert await raw.answer() == expected[LENGTH_LAYOUT.size :]
    raw.send(raft_frame(voter(2)))
    assert await raw.closed()
    assert one.notes.callers == [-1]
    assert one.notes.frames == []
    assert "from a broker that has not joined yet" in one.logged[0]


def test_who_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "CONNECT_MAX_S", 0.1)

    async def scenario() -> None:
        async with listening() as one:
            greeted = await one.greeted()
            for said in (b"", bytes(request_frame(hello(), 0, 5))[:-1]):
                raw = await one.say(said)
                assert await raw.closed()
            assert "no hello within" in one.logged[0]
            greeted.send(raft_frame(voter(2)))  # silence is allowed once it is known who is silent
            await until(lambda: bool(one.notes.frames))

    asyncio.run(scenario())


def test_the_connecting_side_checks_whom_it_reached() -> None:
    said = hello(2, to=1)
    check_answer(PeerHelloAnswer(cluster_id=CLUSTER_ID, broker_id=1), said, 1)
    for answer, why in (
        (PeerHelloAnswer(cluster_id=CLUSTER_ID, broker_id=3), "broker 3 answered at the address of broker 1"),
        (
            PeerHelloAnswer(cluster_id="another", broker_id=1),
            "a broker of cluster another answered, expected cluster the-cluster",
        ),
        (PeerHelloAnswer(error_code=104, error_message="go away"), "INCONSISTENT_CLUSTER_ID: go away"),
        (PeerHelloAnswer(error_code=9999), "UNKNOWN_SERVER_ERROR: no reason given"),
    ):
        with pytest.raises(Refused, match=why):
            check_answer(answer, said, 1)
    anyone = hello(-1, cluster_id="", to=-1)
    check_answer(PeerHelloAnswer(cluster_id="whatever", broker_id=5), anyone, None)
