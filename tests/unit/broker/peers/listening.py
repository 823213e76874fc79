"""The peers' port of broker 1 on loopback, and raw connections that may send anything."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tailrace.broker.peers import LaneKind, OwnLevels, Peers
from tailrace.broker.peers.framing import raft_frame_head, read_answer, request_frame
from tailrace.broker.peers.raft_codec import pack
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.raft.voters import Voter
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tests.unit.broker.peers.stage import CLUSTER_ID, LEVELS, Notes, key, vote_request, voter
from tests.unit.doors.kafka.hostile import Raw, heard, until


def hello(broker: int = 2, **other: Any) -> PeerHello:
    given = {"cluster_id": CLUSTER_ID, "broker_id": broker, "directory_id": voter(broker % 256).directory, "to": 1}
    return PeerHello(**{**given, **other})


def raft_frame(sender: Voter, epoch: int = 1) -> bytes:
    body = pack([(key(1), vote_request(sender, 1, epoch))])
    return bytes(raft_frame_head(body) + body)


class Listening:
    """Broker 1, what it heard, and what it logged."""

    def __init__(self, peers: Peers, port: int, notes: Notes, logged: list[str]) -> None:
        self.peers = peers
        self.port = port
        self.notes = notes
        self.logged = logged

    async def say(self, *frames: bytes) -> Raw:
        raw = await Raw.connect(self.port)
        for frame in frames:
            raw.send(frame)
        return raw

    async def greet(self, said: PeerHello) -> tuple[Raw, PeerHelloAnswer]:
        raw = await self.say(bytes(request_frame(said, 0, 5)))
        number, answer = read_answer(await raw.answer(), PeerHelloAnswer, 0)
        assert number == 5
        return raw, answer

    async def greeted(self, broker: int = 2, lane: LaneKind = LaneKind.CONTROL) -> Raw:
        raw, answer = await self.greet(hello(broker, lane=lane))
        assert answer.error_code == 0
        return raw

    async def is_well(self) -> None:
        """A well-behaved peer is served."""
        raw = await self.greeted(99)
        raw.send(raft_frame(voter(99), 4711))
        await until(lambda: 4711 in self.notes.epochs)
        raw.close()


@asynccontextmanager
async def listening(levels: OwnLevels = LEVELS) -> AsyncIterator[Listening]:
    notes = Notes()
    peers = Peers(system_ports(), Settings(), voter(1), CLUSTER_ID, notes, notes.call, levels)
    port = await peers.listen("127.0.0.1", 0)
    with heard() as logged:
        yield Listening(peers, port, notes, logged)
    await peers.close()


def with_listener(test: Callable[[Listening], Awaitable[None]]) -> Callable[[], None]:
    """A test against a real listener, which has to be well afterwards."""

    async def run() -> None:
        async with listening() as one:
            await test(one)
            await one.is_well()

    def call() -> None:
        asyncio.run(run())

    call.__name__, call.__doc__, call.__module__ = test.__name__, test.__doc__, test.__module__
    return call
