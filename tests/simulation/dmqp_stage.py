"""Three simulated brokers with DMQP doors, and clients that push and pop at all of them while brokers fail."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tailrace.broker.node import Node
from tailrace.doors.dmqp import DmqpDoor
from tailrace.doors.dmqp.codec import HEADER_BYTES, Codec, Header, Method, Status
from tailrace.doors.door import Door
from tailrace.doors.in_broker import BrokerHost
from tailrace.ports import Net
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.simulation import World
from tests.simulation.door_stage import ANSWER_MAX_S, BROKERS, RETRY_S, DoorServer, DoorStage, run_stage

PORT: Final = 8000
TOPIC_ID: Final = 1
MESSAGES: Final = 40  # of each client that pushes
PUSHERS: Final = 2
POPPERS: Final = 3
CODEC: Final = Codec()


class DmqpServer(DoorServer):
    def __init__(self, world: World, number: int, plan: Plan) -> None:
        super().__init__(world, number, plan, dmqp_port=PORT, dmqp_security_protocol="PLAINTEXT")

    def door_of(self, node: Node) -> Door:
        return DmqpDoor(BrokerHost(node, lambda: None))


@dataclass(slots=True)
class History:
    """What clients were told."""

    acknowledged: list[bytes] = field(default_factory=list)
    pushed_in_doubt: Counter[bytes] = field(default_factory=Counter)  # attempts without a good answer
    popped: list[bytes] = field(default_factory=list)
    pops_in_doubt: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        times = Counter(self.popped)
        for payload, count in times.items():
            assert count <= 1 + self.pushed_in_doubt[payload], f"{payload!r} was popped {count} times"
            assert payload in self.acknowledged, f"{payload!r} was never pushed"
        missing = [payload for payload in self.acknowledged if not times[payload]]
        assert len(missing) <= self.pops_in_doubt, f"{missing} are lost; {self.pops_in_doubt} pops were in doubt"


class _Conversation(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.changed = asyncio.Event()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self.changed.set()

    async def read(self, size: int) -> bytes:
        while len(self.received) < size:
            if self.is_lost:
                raise ConnectionResetError
            self.changed.clear()
            await self.changed.wait()
        data = bytes(self.received[:size])
        del self.received[:size]
        return data


class Caller:
    """A client that goes to another broker when one does not answer."""

    def __init__(self, net: Net, chance: random.Random, host: str = "") -> None:
        self._net = net
        self._chance = chance
        self._host = host  # empty: any
        self._open: _Conversation | None = None

    async def call(self, method: Method, payload: bytes = b"") -> tuple[Status, bytes] | None:
        """None: nobody knows what became of the request. OSError: it was not sent."""
        if self._open is None:
            host = self._host or f"b{self._chance.randint(1, BROKERS)}"
            async with asyncio.timeout(ANSWER_MAX_S):
                self._open = await self._net.connect(_Conversation, host, PORT)
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                self._open.transport.write(CODEC.encoded(Header(0, len(payload), method, TOPIC_ID, 0)) + payload)  # type: ignore[attr-defined]
                header = CODEC.header(await self._open.read(HEADER_BYTES))
                return Status(header.status), await self._open.read(header.length)
        except (OSError, TimeoutError):
            self._open.transport.abort()  # type: ignore[attr-defined]
            self._open = None
            return None


class Stage(DoorStage[DmqpServer, History]):
    def __init__(self, world: World) -> None:
        super().__init__(world, "dmqp", DmqpServer, History())
        self._machine = world.machine("clients")
        self._ports = self._machine.boot()
        self.is_healed = False

    async def ask(self, host: str, method: Method, payload: bytes = b"") -> tuple[Status, bytes]:
        """One request to this broker, over a connection of its own."""

        async def work() -> tuple[Status, bytes]:
            caller = Caller(self._ports.net, self._chance, host)
            answer = await caller.call(method, payload)
            assert answer is not None, f"no answer within {ANSWER_MAX_S:g} s"
            return answer

        return await self._machine.run(work())

    async def play(self) -> None:
        pushing = [self._machine.spawn(self._push(number)) for number in range(PUSHERS)]
        popping = [self._machine.spawn(self._pop()) for _ in range(POPPERS)]
        await self.disturb(5)
        for task in pushing:
            await task
        self.is_healed = True
        for task in popping:
            await task

    async def _push(self, number: int) -> None:
        caller, history = Caller(self._ports.net, self._chance), self.history
        for count in range(MESSAGES):
            payload = b"%d-%d" % (number, count)
            while True:
                try:
                    answer = await caller.call(Method.PUSH, payload)
                except (OSError, TimeoutError):
                    await asyncio.sleep(RETRY_S)
                    continue
                history.statuses[f"push {answer and answer[0].name}"] += 1
                if answer is not None and answer[0] is Status.OK:
                    break
                assert answer is None or answer[0] is Status.EAGAIN, answer
                history.pushed_in_doubt[payload] += 1
                await asyncio.sleep(RETRY_S)
            history.acknowledged.append(payload)
            await asyncio.sleep(self._chance.uniform(0.0, 0.2))

    async def _pop(self) -> None:
        caller, history = Caller(self._ports.net, self._chance), self.history
        while True:
            try:
                answer = await caller.call(Method.POP)
            except (OSError, TimeoutError):
                await asyncio.sleep(RETRY_S)
                continue
            history.statuses[f"pop {answer and answer[0].name}"] += 1
            if answer is not None and answer[0] is Status.OK:
                history.popped.append(answer[1])
            elif answer is not None and answer[0] is Status.ENODATA:
                if self.is_healed:
                    return
                await asyncio.sleep(RETRY_S)
            else:
                assert answer is None or answer[0] is Status.EAGAIN, answer
                history.pops_in_doubt += 1
                await asyncio.sleep(RETRY_S)


def run(seed: int) -> tuple[History, str]:
    return run_stage(seed, Stage, steps_max=3_000_000)
