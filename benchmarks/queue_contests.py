"""Queues: our broker against Apache Kafka's share groups, RabbitMQ's quorum queues and NATS JetStream.

Against Kafka the client is the same on both sides: one ShareConsumer of confluent-kafka with implicit acknowledgement.
RabbitMQ and NATS are used as their own Go clients use them (`go/`): sending with up to 1,000 messages unconfirmed, and
taking with up to 2,000 unacknowledged, which RabbitMQ gets one acknowledgement for every 500 of, and JetStream one for
each. Ours has librdkafka as the producer, with acks=all, and confluent-kafka's ShareConsumer.

All servers stay up and take turns; a short first round warms them up. A server that is not installed is skipped, with a
message that says so.
"""

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from rich.console import Console

from benchmarks import other_queues, ours, rdkafka, share_load
from benchmarks.connection import create_topic, delete_topic
from benchmarks.contests import Contest, Entrant, Figure
from benchmarks.fetched import Missing
from benchmarks.go_programs import programs
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.processes import DidNotStart, Server

ROUNDS: Final = 3
WARM_UP_SCALE: Final = 0.3
ACKS_ALL: Final = -1
VALUE_BYTES: Final = 100
MESSAGES: Final = {"tailrace": 500_000, "kafka": 500_000, "rabbitmq": 50_000, "nats": 100_000}  # a second or more
SPARE: Final = 5_000
Kind = Literal["send", "take"]
NAMES: Final[dict[Kind, str]] = {"send": "send 100 B messages", "take": "take and accept 100 B messages"}
AS_GOOD_AS_KAFKA: Final = Threshold(of="ratio", at_least=1.0)
BETTER_THAN_RABBITMQ: Final = Threshold(of="ratio", at_least=1.5)


# Beside Kafka


def sharing(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    found = taken(entrant.server, topic, int(MESSAGES[entrant.server.name] * scale))
    name = f"{NAMES['take']}, share group"
    return [
        Figure(name=name, unit="msg/s", value=found.per_second, threshold=AS_GOOD_AS_KAFKA, acks=ACKS_ALL),
        Figure(name=f"{name}, broker's CPU", unit="µs/msg", value=found.cpu_microseconds, acks=ACKS_ALL),
    ]


def taken(server: Server, topic: str, messages: int) -> share_load.ShareRun:
    """Fill a topic, and take the messages."""
    share_load.measured(server, "fill", topic, messages + SPARE)
    return share_load.measured(server, "librdkafka", topic, messages)


CONTESTS: Final[dict[str, Contest]] = {"queues": sharing}


# Beside RabbitMQ and NATS


@dataclass(frozen=True, slots=True, kw_only=True)
class GoWork:
    """The argument of the Go program."""

    system: str
    kind: Kind
    host: str
    port: int
    queue: str
    messages: int
    value_bytes: int = VALUE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    shown: str
    start: Callable[[Path], AbstractContextManager[Server]]
    fsync: ours.Fsync  # of ours, to compare with: whether a confirmed message is on disk
    threshold: Threshold | None = None


PEERS: Final[dict[str, Peer]] = {
    "rabbitmq": Peer(
        shown="a quorum queue of RabbitMQ",
        start=other_queues.rabbitmq,
        fsync="always",
        threshold=BETTER_THAN_RABBITMQ,
    ),
    "nats": Peer(shown="NATS JetStream", start=other_queues.nats, fsync="never"),
}
Rates = dict[tuple[str, Kind], list[float]]  # messages per second, by label and kind; one per round


def compete(names: Sequence[str], folder: Path, tell: Callable[[str], None]) -> list[Outcome]:
    rates: Rates = {}
    with ExitStack() as stack:
        tell("queues of others: starting")
        peers = enter(stack, names, folder)
        if not peers:
            return []
        servers = dict(peers)
        for fsync in ("never", "always"):
            servers[fsync] = stack.enter_context(ours.broker(made(folder / f"queues-{fsync}"), fsync))
        labels = list(servers)
        for number in range(ROUNDS + 1):  # round 0 warms up
            for position in range(len(labels)):
                label = labels[(position + number) % len(labels)]
                tell(f"queues of others, round {number} of {ROUNDS}: {label}")
                for kind, rate in one_round(
                    servers[label], f"queue-{number}", 1.0 if number else WARM_UP_SCALE
                ).items():
                    if number:
                        rates.setdefault((label, kind), []).append(rate)
    return [outcome for name in peers for outcome in judge(name, rates)]


def enter(stack: ExitStack, names: Sequence[str], folder: Path) -> dict[str, Server]:
    """Start the peers that are there."""
    found = {}
    for name in names:
        try:
            programs()
            found[name] = stack.enter_context(PEERS[name].start(made(folder / name)))
        except Missing as missing:
            Console(stderr=True).print(f"{name} skipped: {missing}", markup=False)
    return found


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def one_round(server: Server, queue: str, scale: float) -> dict[Kind, float]:
    messages = int(MESSAGES[server.name] * scale)
    if server.name != "tailrace":
        return {
            "send": through_go(server, "send", queue, messages),
            "take": through_go(server, "take", queue, messages),
        }
    rates: dict[Kind, float] = {}
    for kind in NAMES:
        topic = f"{queue}-{kind}"
        create_topic(server.host, server.port, topic)
        rates[kind] = sent(server, topic, messages) if kind == "send" else taken(server, topic, messages).per_second
        delete_topic(server.host, server.port, topic)
    return rates


def sent(server: Server, topic: str, messages: int) -> float:
    options = {"value_bytes": VALUE_BYTES, "acks": ACKS_ALL}
    return rdkafka.measured(server, "produce", topic, messages, pids=[server.pid], **options).requests_per_second


def through_go(server: Server, kind: Kind, queue: str, messages: int) -> float:
    work = GoWork(system=server.name, kind=kind, host=server.host, port=server.port, queue=queue, messages=messages)
    command = [str(programs() / "load"), json.dumps(asdict(work))]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        raise DidNotStart(f"the load of {server.name} failed; its output is above")
    return messages / float(json.loads(ran.stdout)["seconds"])


def judge(name: str, rates: Rates) -> list[Outcome]:
    """The threshold applies where both sides do the same with the disk."""
    peer = PEERS[name]
    return [
        Outcome(
            name=f"{NAMES[kind]}, beside {peer.shown}",
            fsync=fsync,
            acks="all",
            unit="msg/s",
            rounds=tuple(rates[fsync, kind]),
            beside="peer",
            beside_rounds=tuple(rates[name, kind]),
            threshold=peer.threshold if fsync == peer.fsync else None,
        )
        for fsync in ("never", "always")
        for kind in NAMES
    ]
