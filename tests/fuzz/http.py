"""`python -m tests.fuzz.http --requests 200000`: hostile requests against a live HTTP door. Exits 1 with a finding.

Most connections send streams of requests that are whole, with content that is wrong in every way: each must get one
answer, in order, with a status that fits it. The others break HTTP itself: valid requests with bytes changed, cut off
or repeated, heads without end, lengths that lie, other protocols, ends and resets in the middle; of them the server
must let go. Beside all of them one good client sends and takes messages, and must be served. Afterwards no connection
is left over, memory is within its bounds, the log shows no failure, every log on disk is whole, and the good client's
message is there after a restart.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from rich.console import Console

from tailrace.testing import Broker
from tests.fuzz import target
from tests.fuzz.hostile_sender import ANSWER_MAX_S, HostileSender
from tests.fuzz.http_rest import wrong_request

MiB: Final = 1024 * 1024
VOLLEY_MAX: Final = 40
REST_SHARE: Final = 0.5  # of whole requests
BROKEN_SHARE: Final = 0.7  # of connections
GROWTH_MAX_BYTES: Final = 96 * MiB
PEAK_MAX_BYTES: Final = 512 * MiB
PAUSE_S: Final = 0.02  # of the good client, between two rounds
FAILED: Final = (400,)
VALUES: Final[tuple[object, ...]] = (
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x" * 3000,
    "\ud800",
    [],
    {},
    [[]],
    "\0",
    "../..",
    "__x",
    "a\r\nb: c",
)
PATHS: Final = ("/topics", "/topics/partition", "/producer/register", "/producer/produce", "/consumer/register")
READS: Final = ("/topics/partition", "/consumer/consume", "/size")
NAMES: Final = ("topic", "topic_name", "producer_id", "consumer_id", "message", "partition", "request_id", "partitions")
DEEP: Final = b'{"topic": ' + 50_000 * b"[" + 50_000 * b"]" + b"}"


class Shot(NamedTuple):
    data: bytes
    allowed: tuple[int, ...]  # statuses of the answer


@dataclass(slots=True)
class Outcome:
    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    rounds: int = 0  # of the good client
    warm_bytes: int = 0
    end_bytes: int = 0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def whole_shot(chance: random.Random) -> Shot:
    """A request that is whole, and wrong: none of them makes or changes anything."""
    if chance.random() < REST_SHARE:
        method, path, body, headers, allowed = wrong_request(chance)
        return Shot(request(method, path, body, *headers), allowed)
    dice = chance.random()
    if dice < 0.6:
        wrong = {name: chance.choice(VALUES) for name in chance.sample(NAMES, chance.randrange(5))}
        wrong.pop("topic_name", None)
        wrong["topic"] = chance.choice(("", "a b", "__x", "x" * 300, 7, None, "é"))
        return Shot(request("POST", chance.choice(PATHS[1:]), json.dumps(wrong).encode()), (*FAILED, 405))
    if dice < 0.75:
        body = chance.choice((b"{", b"[]", b"null", b"\xff", b'{"a": NaN}', b"1" * 6000, chance.randbytes(200)))
        return Shot(request("POST", "/producer/produce", body), FAILED)
    if dice < 0.752:
        return Shot(request("POST", "/producer/produce", DEEP), FAILED)
    if dice < 0.8:
        query = "&".join(
            f"{name}={chance.choice(('', '%ff', '%', '-1', '9' * 30, 'a'))}" for name in chance.sample(NAMES, 3)
        )
        return Shot(request("GET", f"{chance.choice(READS)}?{query}"), FAILED)
    if dice < 0.85:
        return Shot(request("GET", "/" + chance.choice(("x", "topics/", "%2e%2e", "v2", "size/x", ""))), (404,))
    if dice < 0.9:
        return Shot(request("DELETE", chance.choice(PATHS)), (405,))
    if dice < 0.95:
        return Shot(request("POST", "/topics", b"", "Origin: http://evil.example"), (403,))
    return Shot(request("OPTIONS", chance.choice(PATHS)), (204,))


def broken_bytes(chance: random.Random) -> bytes:
    """Bytes that are no HTTP, or stop being it."""
    before = b"".join(whole_shot(chance).data for _ in range(chance.randint(0, 3)))
    kind = chance.randrange(7)
    if kind == 0:
        return before + b"GET /" + chance.choice((b"a", b"%", b"\xff")) * chance.choice((100, 20_000, 200_000))
    if kind == 1:
        return before + b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * chance.choice((10, 101, 5000))
    if kind == 2:
        lie = chance.choice((b"9" * 30, b"-1", b"2000000", b"3, 4", b"0x10", b""))
        return before + b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + lie + b"\r\n\r\nabc"
    if kind == 3:
        chunks = chance.choice((b"5\r\nabc", b"-1\r\n", b"f" * 20, b"1;" + b"x" * 100_000, b"1\r\na\r\n" * 5000))
        return before + b"POST /topics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    if kind == 4:
        return before + chance.choice((b"\x16\x03\x01" + bytes(300), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 40))
    if kind == 5:
        return before + chance.randbytes(chance.randrange(1, 3000))
    return before + _mutated(whole_shot(chance).data, chance)


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed))
        match chance.randrange(4):
            case 0:
                changed[at] = chance.getrandbits(8)
            case 1:
                del changed[at : at + chance.randint(1, 20)]
                changed += b"x"
            case 2:
                changed[at:at] = chance.choice((b"\r\n", b"\r\n\r\n", b" ", b":", b"\0", b"Content-Length: 3\r\n"))
            case _:
                changed[at:at] = changed[max(0, at - 30) : at]
    return bytes(changed)


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    return int(head[9:12]), await reader.readexactly(length)


class Sender(HostileSender):
    def __init__(self, port: int, seed: int, outcome: Outcome, wanted: int) -> None:
        super().__init__(port, seed, outcome, wanted, BROKEN_SHARE)
        self._outcome = outcome

    def broken_bytes(self) -> bytes:
        return broken_bytes(self._chance)

    async def volley(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shots = [whole_shot(self._chance) for _ in range(self._chance.randint(1, VOLLEY_MAX))]
        sending = asyncio.ensure_future(self.send(writer, b"".join(shot.data for shot in shots)))
        for shot in shots:
            status, _ = await read_answer(reader)
            self._outcome.requests += 1
            self._outcome.statuses[status] += 1
            if status not in shot.allowed:
                self._outcome.findings.append(f"status {status} for {shot.data[:300]!r}")
        await sending


class Good:
    """A client that does everything right, and keeps no message in the queue."""

    def __init__(self, port: int, outcome: Outcome) -> None:
        self.port = port
        self._outcome = outcome
        self.stopping = False
        self._ids: dict[str, int] = {}

    async def ask(self, method: str, path: str, **given: Any) -> tuple[int, Any]:
        self._writer.write(request(method, path, json.dumps({"topic": "good", **given}).encode()))
        async with asyncio.timeout(ANSWER_MAX_S):
            status, body = await read_answer(self._reader)
        return status, json.loads(body)

    async def run(self) -> None:
        await self.connect()
        for kind in ("producer", "consumer"):
            _, answer = await self.ask("POST", f"/{kind}/register")
            self._ids[kind] = answer[f"{kind}_id"]
        while not self.stopping:
            text = str(self._outcome.rounds)
            sent = await self.send(text)
            taken = await self.take()
            if (sent, taken) != (200, text):
                self._outcome.findings.append(f"the good client got {sent}, {taken} in round {text}")
            self._outcome.rounds += 1
            await asyncio.sleep(PAUSE_S)
        await self.send("after a restart")

    async def send(self, text: str) -> int:
        return (await self.ask("POST", "/producer/produce", producer_id=self._ids["producer"], message=text))[0]

    async def take(self) -> str:
        return str((await self.ask("GET", "/consumer/consume", consumer_id=self._ids["consumer"]))[1]["message"])

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)

    def close(self) -> None:
        self._writer.close()


async def fuzz(broker: Broker, seed: int, requests: int, connections: int) -> Outcome:
    outcome = Outcome()
    port = broker.port_of("http")
    sockets_before = target.sockets(broker.pid)
    good = Good(port, outcome)
    beside = asyncio.create_task(good.run())
    fifth = max(requests // 5, 1)
    for part in range(5):
        senders = [Sender(port, 1000 * seed + 100 * part + n, outcome, (part + 1) * fifth) for n in range(connections)]
        await asyncio.gather(*(sender.run() for sender in senders))
        if not outcome.warm_bytes:
            outcome.warm_bytes = target.resident_bytes(broker.pid)
    good.stopping = True
    await beside
    good.close()
    await target.until_sockets(broker.pid, sockets_before + 8)  # those of the door's client may stay
    outcome.end_bytes, outcome.peak_bytes = target.resident_bytes(broker.pid), target.peak_bytes(broker.pid)
    if outcome.end_bytes - outcome.warm_bytes > GROWTH_MAX_BYTES:
        outcome.findings.append(f"memory grew by {(outcome.end_bytes - outcome.warm_bytes) / MiB:.0f} MiB")
    if outcome.peak_bytes > PEAK_MAX_BYTES:
        outcome.findings.append(f"memory reached {outcome.peak_bytes / MiB:.0f} MiB")
    broker.stop()
    outcome.findings += [f"on disk: {problem}" for problem in target.damage_in(broker.data_dir)]
    broker.start()
    good.port = broker.port_of("http")
    await good.connect()
    if (found := [await good.take(), await good.take()]) != [
        "after a restart",
        "No new message is published to good.",
    ]:
        outcome.findings.append(f"after the restart the good client found {found}")
    good.close()
    outcome.findings += [f"in the broker's log:\n{text}" for text in target.failures_in(broker.log)]
    return outcome


@contextmanager
def serving() -> Iterator[Broker]:
    with Broker(http_port=0, fsync="never") as broker:
        yield broker


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.http", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=8)
    given = parser.parse_args()
    with serving() as broker:
        outcome = asyncio.run(fuzz(broker, given.seed, given.requests, given.connections))
    console = Console(stderr=not sys.stdout.isatty())
    console.print(f"{outcome.requests} requests, {outcome.broken} broken streams, {dict(outcome.statuses)}")
    memory = [one // MiB for one in (outcome.warm_bytes, outcome.end_bytes, outcome.peak_bytes)]
    console.print(f"round trips beside: {outcome.rounds}; MiB resident warm, end, peak: {memory}")
    for finding in outcome.findings[:50]:
        console.print(f"finding: {finding}", markup=False)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
