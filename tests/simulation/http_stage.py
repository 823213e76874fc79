"""Three simulated brokers with HTTP doors, and clients of the queue that use all of them while brokers fail."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tailrace.broker.node import Node
from tailrace.doors.door import Door
from tailrace.doors.http import HttpDoor
from tailrace.doors.in_broker import BrokerHost
from tailrace.ports import Net
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.simulation import World
from tests.simulation.door_stage import ANSWER_MAX_S, BROKERS, RETRY_S, DoorServer, DoorStage, run_stage

PORT: Final = 8001
TOPIC: Final = "t"
MESSAGES: Final = 25  # of each producer
PRODUCERS: Final = 2
CONSUMERS: Final = 2  # that number their requests; there is one more, which does not


class HttpServer(DoorServer):
    def __init__(self, world: World, number: int, plan: Plan) -> None:
        super().__init__(world, number, plan, http_port=PORT)

    def door_of(self, node: Node) -> Door:
        return HttpDoor(BrokerHost(node, lambda: None))


@dataclass(slots=True)
class History:
    """What clients were told."""

    produced: dict[int, list[str]] = field(default_factory=dict)
    consumed: dict[int, list[str]] = field(default_factory=dict)  # by consumers that number their requests
    taken: list[str] = field(default_factory=list)  # by the one that does not
    takes_in_doubt: int = 0
    answers: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        every = sorted(text for texts in self.produced.values() for text in texts)
        assert len(every) == PRODUCERS * MESSAGES
        first = self.consumed[0]
        assert sorted(first) == every, "not every message came once"
        assert all(one == first for one in self.consumed.values()), "consumers disagree about the order"
        for number, texts in self.produced.items():
            assert [one for one in first if one.startswith(f"{number}-")] == texts, f"producer {number} is out of order"
        assert len(set(self.taken)) == len(self.taken), "a message came twice"
        assert [one for one in first if one in self.taken] == self.taken, "messages came out of order"
        assert len(every) - len(self.taken) <= self.takes_in_doubt, f"lost; {self.takes_in_doubt} takes were in doubt"


class _Conversation(asyncio.Protocol):
    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[int, Any]] | None = None
        self.transport: Any = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        if mark and len(body) >= int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]):
            self._received = b""
            if self.answer is not None and not self.answer.done():
                self.answer.set_result((int(head[9:12]), json.loads(body)))

    def connection_lost(self, error: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError())


class Caller:
    """A client that goes to another broker when one does not answer, and sometimes just so."""

    def __init__(self, net: Net, chance: random.Random) -> None:
        self._net = net
        self._chance = chance
        self._open: _Conversation | None = None

    async def call(self, method: str, path: str, **given: Any) -> tuple[int, Any] | None:
        """None: nobody knows what became of the request."""
        body = json.dumps({"topic": TOPIC, **given}).encode()
        request = f"{method} {path} HTTP/1.1\r\nHost: b\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                if self._open is None or self._open.transport.is_closing() or self._chance.random() < 0.2:
                    self.leave()
                    self._open = await self._net.connect(_Conversation, f"b{self._chance.randint(1, BROKERS)}", PORT)
                self._open.answer = asyncio.get_running_loop().create_future()
                self._open.transport.write(request)
                if self._chance.random() < 0.1:  # the client gives up early, and asks again
                    await asyncio.wait_for(asyncio.shield(self._open.answer), self._chance.uniform(0.0, 0.1))
                return await self._open.answer
        except (OSError, TimeoutError):
            self.leave()
            return None

    async def until_answered(self, method: str, path: str, history: History, **given: Any) -> tuple[int, Any]:
        while True:
            answer = await self.call(method, path, **given)
            history.answers[f"{path} {answer and answer[0]}"] += 1
            if answer is not None and answer[0] != 503:
                return answer
            await asyncio.sleep(RETRY_S)

    def leave(self) -> None:
        if self._open is not None:
            if self._open.answer is not None:
                self._open.answer.cancel()
            self._open.transport.abort()
            self._open = None


class Stage(DoorStage[HttpServer, History]):
    def __init__(self, world: World) -> None:
        super().__init__(world, "http", HttpServer, History())
        self._machine = world.machine("clients")
        self._ports = self._machine.boot()
        self.is_healed = False

    async def play(self) -> None:
        await self._machine.run(self._caller().until_answered("POST", "/topics", self.history, topic_name=TOPIC))
        producing = [self._machine.spawn(self._produce(number)) for number in range(PRODUCERS)]
        consuming = [self._machine.spawn(self._consume(number)) for number in range(CONSUMERS)]
        consuming.append(self._machine.spawn(self._take()))
        await self.disturb(4)
        for task in producing:
            await task
        self.is_healed = True
        for task in consuming:
            await task

    def _caller(self) -> Caller:
        return Caller(self._ports.net, self._chance)

    async def _registered(self, caller: Caller, kind: str) -> int:
        status, answer = await caller.until_answered("POST", f"/{kind}/register", self.history)
        assert status == 200, answer
        return int(answer[f"{kind}_id"])

    async def _produce(self, number: int) -> None:
        caller = self._caller()
        given: dict[str, Any] = {"producer_id": await self._registered(caller, "producer")}
        sent = self.history.produced[number] = []
        for count in range(MESSAGES):
            given |= {"message": f"{number}-{count}", "request_id": count}
            status, answer = await caller.until_answered("POST", "/producer/produce", self.history, **given)
            assert status == 200, answer
            sent.append(given["message"])
            await asyncio.sleep(self._chance.uniform(0.0, 0.2))

    async def _consume(self, number: int) -> None:
        caller = self._caller()
        consumer = await self._registered(caller, "consumer")
        found = self.history.consumed[number] = []
        while True:
            given = {"consumer_id": consumer, "request_id": len(found)}
            was_healed = self.is_healed
            status, answer = await caller.until_answered("GET", "/consumer/consume", self.history, **given)
            if status == 200:
                found.append(answer["message"])
            else:
                assert "No new message" in answer["message"], answer
                if was_healed:
                    assert (await caller.until_answered("GET", "/size", self.history, **given))[1]["size"] == 0
                    return
                await asyncio.sleep(RETRY_S)

    async def _take(self) -> None:
        caller, history = self._caller(), self.history
        consumer = await self._registered(caller, "consumer")
        while True:
            was_healed = self.is_healed
            answer = await caller.call("GET", "/consumer/consume", consumer_id=consumer)
            if answer is not None and answer[0] == 200:
                history.taken.append(answer[1]["message"])
            elif answer is not None and answer[0] == 400:
                assert "No new message" in answer[1]["message"], answer
                if was_healed:
                    return
                await asyncio.sleep(RETRY_S)
            else:
                history.takes_in_doubt += 1
                await asyncio.sleep(RETRY_S)


def run(seed: int) -> tuple[History, str]:
    return run_stage(seed, Stage, steps_max=5_000_000)
