"""`python -m tests.fuzz.dmqp --requests 200000`: hostile requests against a live DMQP door. Exits 1 with a finding.

Most connections send streams of requests whose frames are whole and whose content is not: every one of them must get
one answer, with a status that fits it, in order. The others break the frames: lengths that lie, headers that are cut
off, other protocols, ends and resets in the middle; of them the server must let go. Beside all of them one good client
pushes and pops, and must be served. Afterwards no connection is left over, memory is within its bounds, the log shows
no failure, every log on disk is whole, and the good client's messages are there once after a restart.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rich.console import Console

from tailrace.doors.dmqp.codec import HEADER_BYTES, LAYOUT, Method, Status
from tailrace.testing import Broker
from tests.fuzz import target
from tests.fuzz.hostile_sender import ANSWER_MAX_S, HostileSender

MiB: Final = 1024 * 1024
PAYLOAD_MAX_BYTES: Final = MiB
VOLLEY_MAX: Final = 60
BROKEN_SHARE: Final = 0.6  # of connections
GROWTH_MAX_BYTES: Final = 96 * MiB
PEAK_MAX_BYTES: Final = 512 * MiB
PAUSE_S: Final = 0.02  # of the good client, between two rounds
TOPIC_IDS: Final = (*range(8), 255)
GOOD_TOPIC: Final = 100
READS: Final = (Method.POP, Method.PEEK, Method.PEEK_TIMESTAMP)


class Shot(NamedTuple):
    data: bytes
    allowed: tuple[Status, ...]  # of the answer


@dataclass(slots=True)
class Outcome:
    requests: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    rounds: int = 0  # of the good client
    warm_bytes: int = 0
    end_bytes: int = 0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)


def frame(method: int, topic_id: int, payload: bytes, chance: random.Random, *, length: int | None = None) -> bytes:
    """A request; what means nothing in it is random."""
    told = len(payload) if length is None else length
    noise = chance.getrandbits(64), chance.getrandbits(8), chance.getrandbits(8)
    return LAYOUT.pack(noise[0], told, method, topic_id, noise[1], noise[2]) + payload


def whole_shot(chance: random.Random) -> Shot:
    """A request whose frame is whole."""
    topic_id, dice = chance.choice(TOPIC_IDS), chance.random()
    some = chance.randbytes(chance.choice((0, 1, 15, 16, 17, 200, 3000)))
    if dice < 0.25:
        return Shot(frame(Method.PUSH, topic_id, some, chance), (Status.OK,))
    if dice < 0.265:
        return Shot(frame(chance.choice(READS), topic_id, some, chance), (Status.OK, Status.ENODATA, Status.EAGAIN))
    if dice < 0.5:
        return Shot(frame(Method.RESPONSE, topic_id, some, chance), (Status.EPROTO,))
    if dice < 0.995:
        return Shot(frame(chance.randint(5, 255), chance.getrandbits(8), some, chance), (Status.ENOSYS,))
    if dice < 0.9955:
        return Shot(frame(Method.PUSH, topic_id, bytes(PAYLOAD_MAX_BYTES), chance), (Status.OK,))
    large = bytes(PAYLOAD_MAX_BYTES + chance.randint(1, 70_000))
    return Shot(frame(chance.choice((Method.PUSH, *READS)), topic_id, large, chance), (Status.EMSGSIZE,))


def broken_bytes(chance: random.Random) -> bytes:
    """Bytes in which frames are lost."""
    before = b"".join(whole_shot(chance).data for _ in range(chance.randint(0, 3)))
    whole = frame(Method.PUSH, chance.choice(TOPIC_IDS), chance.randbytes(300), chance)
    kind = chance.randrange(5)
    if kind == 0:
        return before + whole[: chance.randrange(len(whole))]
    if kind == 1:
        lie = chance.choice((101, PAYLOAD_MAX_BYTES, 2**32 - 1))
        return before + frame(Method.PUSH, 1, bytes(100), chance, length=lie)
    if kind == 2:
        return before + frame(Method.PUSH, 1, bytes(100), chance, length=chance.randrange(100))
    if kind == 3:
        return before + chance.choice((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(300), b"\0" * 40))
    return chance.randbytes(chance.randrange(1, 3000))


class Sender(HostileSender):
    def __init__(self, port: int, seed: int, outcome: Outcome, wanted: int) -> None:
        super().__init__(port, seed, outcome, wanted, BROKEN_SHARE)
        self._outcome = outcome

    def broken_bytes(self) -> bytes:
        return broken_bytes(self._chance)

    async def volley(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chance = self._chance
        shots = [whole_shot(chance) for _ in range(chance.randint(1, VOLLEY_MAX))]
        sending = asyncio.ensure_future(self.send(writer, b"".join(shot.data for shot in shots)))
        for shot in shots:
            _, length, method, _, status, _ = LAYOUT.unpack(await reader.readexactly(HEADER_BYTES))
            await reader.readexactly(length)
            self._outcome.requests += 1
            self._outcome.statuses[Status(status).name] += 1
            if method != Method.RESPONSE or status not in shot.allowed:
                self._outcome.findings.append(f"status {status} for {shot.data[:32].hex()}")
        await sending


class Good:
    """A client that does everything right, and keeps one message in the queue."""

    def __init__(self, port: int, outcome: Outcome) -> None:
        self.port = port
        self._outcome = outcome
        self.stopping = False

    async def call(self, method: int, payload: bytes = b"") -> tuple[int, bytes]:
        self._writer.write(LAYOUT.pack(0, len(payload), method, GOOD_TOPIC, 0, 0) + payload)
        async with asyncio.timeout(ANSWER_MAX_S):
            _, length, _, _, status, _ = LAYOUT.unpack(await self._reader.readexactly(HEADER_BYTES))
            return status, await self._reader.readexactly(length)

    async def run(self) -> None:
        await self.connect()
        while not self.stopping:
            number = self._outcome.rounds
            pushed, _ = await self.call(Method.PUSH, b"%d" % number)
            popped = await self.call(Method.POP)
            if (pushed, popped) != (Status.OK, (Status.OK, b"%d" % number)):
                self._outcome.findings.append(f"the good client got {pushed}, {popped} in round {number}")
            self._outcome.rounds += 1
            await asyncio.sleep(PAUSE_S)
        await self.call(Method.PUSH, b"after a restart")

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)

    def close(self) -> None:
        self._writer.close()


async def fuzz(broker: Broker, port: int, seed: int, requests: int, connections: int) -> Outcome:
    outcome = Outcome()
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
    await target.until_sockets(broker.pid, sockets_before)
    outcome.end_bytes, outcome.peak_bytes = target.resident_bytes(broker.pid), target.peak_bytes(broker.pid)
    if outcome.end_bytes - outcome.warm_bytes > GROWTH_MAX_BYTES:
        outcome.findings.append(f"memory grew by {(outcome.end_bytes - outcome.warm_bytes) / MiB:.0f} MiB")
    if outcome.peak_bytes > PEAK_MAX_BYTES:
        outcome.findings.append(f"memory reached {outcome.peak_bytes / MiB:.0f} MiB")
    broker.stop()
    outcome.findings += [f"on disk: {problem}" for problem in target.damage_in(broker.data_dir)]
    broker.start()
    good.port = broker.port_of("dmqp")
    await good.connect()
    if (found := [await good.call(Method.POP), (await good.call(Method.POP))[0]]) != [
        (Status.OK, b"after a restart"),
        Status.ENODATA,
    ]:
        outcome.findings.append(f"after the restart the good client found {found}")
    good.close()
    outcome.findings += [f"in the broker's log:\n{text}" for text in target.failures_in(broker.log)]
    return outcome


@contextmanager
def serving() -> Iterator[tuple[Broker, int]]:
    """A broker with a DMQP door, and its port."""
    with Broker(dmqp_port=0, dmqp_security_protocol="PLAINTEXT", fsync="never") as broker:
        yield broker, broker.port_of("dmqp")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.dmqp", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=8)
    given = parser.parse_args()
    with serving() as (broker, port):
        outcome = asyncio.run(fuzz(broker, port, given.seed, given.requests, given.connections))
    console = Console(stderr=not sys.stdout.isatty())
    console.print(
        f"{outcome.requests} requests, {outcome.broken} broken streams, {dict(outcome.statuses.most_common())}"
    )
    memory = [outcome.warm_bytes, outcome.end_bytes, outcome.peak_bytes]
    console.print(
        f"round trips beside: {outcome.rounds}; MiB resident warm, end, peak: {[one // MiB for one in memory]}"
    )
    for finding in outcome.findings[:50]:
        console.print(f"finding: {finding}", markup=False)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
