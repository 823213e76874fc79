"""Our cleaner beside Kafka's: how fast a compacted topic of a million keys gets clean, on one core.

Both have a server of their own, with the cleaner's defaults except for a shorter `log.cleaner.backoff.ms`, and get the
same bytes (see `cleaned`). While they clean they are pinned to the same core and nothing else is sent to them.

The speed is the segments' bytes before the pass over the CPU time of the server and its worker process: what the core
does. The threshold is on that; by the clock it is reported only, as other processes take turns on the core. Our cleaner
runs at the lowest priority; here it gets that of any other process where the system allows it, as Kafka's is a thread
like any other. A short first round warms Kafka's JIT compiler up.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import cleaned, kafka, ours
from benchmarks.cleaned import BACKOFF_MS, BACKOFF_SETTING, KEYS, Cleaned, Held, HeldByKafka, HeldByOurs
from benchmarks.connection import delete_topic
from benchmarks.outcomes import Outcome, Threshold, compared
from benchmarks.processes import Server
from tailrace.model.ids import show_id
from tailrace.model.limits import KiB
from tailrace.testing import Broker

NAME: Final = "cleaner"
ROUNDS: Final = 3
WARM_UP_KEYS: Final = KEYS // 4
SIZES: Final = (100, KiB)
PEER_LABEL: Final = "kafka"
OURS_LABEL: Final = "never"
THRESHOLD: Final = Threshold(of="ratio", at_least=0.3)
Found = dict[tuple[str, int], list[Cleaned]]  # by label and size of values


def compete(folder: Path, tell: Callable[[str], None]) -> list[Outcome]:
    found: Found = {}
    with ExitStack() as stack:
        tell("cleaner: starting")
        servers = enter(stack, folder)
        for size in SIZES:
            for number in range(ROUNDS + 1):  # round 0 warms up
                labels = list(servers)[:: -1 if number % 2 else 1]
                topic, file = f"cleaned-{size}-{number}", folder / "requests"
                tell(f"cleaner, round {number} of {ROUNDS}, {size} B: encoding")
                requests = cleaned.encode(file, topic, size, KEYS if number else WARM_UP_KEYS)
                for label in labels:
                    tell(f"cleaner, round {number} of {ROUNDS}, {size} B: {label}")
                    one = one_round(label, servers[label], folder, topic, requests)
                    if number:
                        found.setdefault((label, size), []).append(one)
                file.unlink()
    return [outcome for size in SIZES for outcome in judge(size, found)]


def enter(stack: ExitStack, folder: Path) -> dict[str, Server]:
    own = {label: folder / f"cleaner-{label}" for label in (PEER_LABEL, OURS_LABEL)}
    for path in own.values():
        path.mkdir()
    peer = stack.enter_context(kafka.serving(own[PEER_LABEL], f"{BACKOFF_SETTING}={BACKOFF_MS}\n"))
    broker = Broker(data_dir=own[OURS_LABEL] / "data", fsync="never", **cleaned.SETTINGS)
    return {PEER_LABEL: peer, OURS_LABEL: ours.as_server(stack.enter_context(broker))}


def one_round(label: str, server: Server, folder: Path, topic: str, requests: cleaned.Requests) -> Cleaned:
    topic_id = cleaned.create_held_back(server, topic)
    own = folder / f"cleaner-{label}"
    held: Held
    if label == PEER_LABEL:
        held = HeldByKafka(server=server, topic=topic, folder=own / "node-1" / "data" / f"{topic}-0")
    else:
        held = HeldByOurs(server=server, topic=topic, folder=own / "data" / f"{show_id(topic_id)}-0")
    cleaned.send(server, topic, requests)
    with cleaned.pinned(server.pid):
        done = held.clean()
    delete_topic(server.host, server.port, topic)
    return done


def judge(size: int, found: Found) -> Iterator[Outcome]:
    own, other = found[OURS_LABEL, size], found[PEER_LABEL, size]
    shown = f"{size} B" if size < KiB else f"{size // KiB} KB"
    figures: tuple[tuple[str, str, Callable[[Cleaned], float], Threshold | None], ...] = (
        ("", "MB/CPU s", lambda one: one.megabytes_per_cpu_second, THRESHOLD),
        (", by the clock", "MB/s", lambda one: one.megabytes_per_second, None),
        (", what is left of the segments", "MB", lambda one: one.bytes_after / 1e6, None),
    )
    for what, unit, figure, threshold in figures:
        yield compared(
            figure,
            own,
            other,
            name=f"clean {KEYS:,} keys with {shown} values, each written {cleaned.TIMES_WRITTEN} times, one core{what}",
            unit=unit,
            fsync=OURS_LABEL,
            acks="1",
            beside="peer",
            threshold=threshold,
        )
