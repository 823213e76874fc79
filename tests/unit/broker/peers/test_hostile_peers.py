"""Malformed and hostile frames on the peers' port close their own connection and affect no other."""

import asyncio
import random

import pytest

from tailrace.broker.peers import LaneKind
from tailrace.broker.peers.framing import request_frame
from tailrace.broker.peers.lane_kind import KEPT_LANES
from tailrace.wire.framing import LENGTH_LAYOUT
from tailrace.wire.headers import request_header
from tailrace.wire.messages.peers.forward import Forward
from tests.unit.broker.peers.listening import Listening, hello, listening, raft_frame, with_listener
from tests.unit.broker.peers.stage import fetch_frame, voter
from tests.unit.doors.kafka.hostile import Raw, until, with_length

forward = bytes(request_frame(Forward(api_key=3, api_version=9, body=b"x" * 100), 0, 1))


@with_listener
async def test_random_bytes_are_closed(one: Listening) -> None:
    chance = random.Random(7)
    for _ in range(50):
        raw = await one.say(chance.randbytes(chance.randrange(4, 5000)), LENGTH_LAYOUT.pack(-1))
        assert await raw.closed()
        raw.close()
    assert one.notes.frames == []


@with_listener
async def test_a_garbled_frame_after_the_hello_closes_its_own_connection_only(one: Listening) -> None:
    chance = random.Random(8)
    good = await one.greeted(3)
    frames = [raft_frame(voter(2)), forward, fetch_frame(b"abc")]
    for lane in KEPT_LANES:
        for _ in range(40):
            raw = await one.greeted(2, lane)
            frame = bytearray(chance.choice(frames))
            for _ in range(chance.randrange(1, 4)):
                frame[chance.randrange(4, len(frame))] = chance.randrange(256)
            raw.send(bytes(frame))
            raw.send(with_length(b"\0"))  # no header at all: it is closed by now, or is now
            await raw.reader.read()
            raw.close()
    good.send(raft_frame(voter(3), 12))
    await until(lambda: 12 in one.notes.epochs)


@pytest.mark.parametrize("size", [0, -1, 4 * 1024 + 1, 2**31 - 1])
def test_a_first_frame_that_no_hello_can_have_is_closed_at_once(size: int) -> None:
    async def scenario() -> None:
        async with listening() as one:
            raw = await one.say(LENGTH_LAYOUT.pack(size))
            assert await raw.closed()
            assert f"a frame of {size} bytes" in one.logged[0]
            await one.is_well()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("lane", "frame", "why"),
    [
        (LaneKind.CONTROL, fetch_frame(b""), "Fetch of version 18 on the control lane"),
        (LaneKind.FETCH, fetch_frame(b"", version=17), "Fetch of version 17 on the fetch lane"),
        (LaneKind.FETCH, raft_frame(voter(2)), "Raft messages of version 0 on the fetch lane"),
        (LaneKind.CATCH_UP, forward, "API 1016 on the catch-up lane"),
        (LaneKind.CONTROL, raft_frame(voter(3)), "Raft messages of broker 3 from broker 2"),
        (LaneKind.CONTROL, raft_frame(voter(2, disk=5)), "from broker 2, or with another directory id"),
        (LaneKind.CONTROL, with_length(request_header(1016, 1, 1, None, True)), "Forward has no version 1"),
        (LaneKind.CONTROL, with_length(request_header(1001, 1, 1, None, True)), "Raft messages of version 1"),
        (LaneKind.CONTROL, with_length(request_header(3, 9, 1, None, True)), "API 3 on the control lane"),
        (LaneKind.CONTROL, with_length(forward[4:] + b"\0"), "1 trailing bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_lane_is_for_what_it_is_for(lane: LaneKind, frame: bytes, why: str) -> None:
    async def scenario() -> None:
        async with listening() as one:
            raw = await one.greeted(2, lane)
            raw.send(frame + frame)
            assert await raw.closed()
            (line,) = one.logged
            assert why in line
            assert one.notes.frames == []
            await one.is_well()

    asyncio.run(scenario())


@with_listener
async def test_frames_come_byte_by_byte(one: Listening) -> None:
    raw = await Raw.connect(one.port)
    for byte in bytes(request_frame(hello(), 0, 5)) + raft_frame(voter(2), 3) + forward:
        raw.send(bytes([byte]))
        await asyncio.sleep(0)
    await raw.answer()
    assert (await raw.answer()).endswith(b"x" * 100 + b"\0")
    assert one.notes.epochs == [3]
