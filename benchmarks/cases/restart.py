"""A broker that is killed right after it has taken much: how long until it serves again, by its number of partitions.

Each round has a fresh broker, which gets 10 GB of 1 KB records in batches of 1 MB, spread over all partitions, and is
killed (SIGKILL) when the last of them is acknowledged. Ready is the line that `tailrace serve` prints; after it, each
partition is asked for its end offset until it is there in full, which shows what is served before the last is scanned.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import frames, load, ours
from benchmarks.brokers import Brokers
from benchmarks.cases import Start
from benchmarks.connection import Connection, Refused
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.processes import Server, read_endpoints, stop

PARTITIONS: Final = (1, 100, 1_000)
ROUNDS: Final = 3
WRITTEN_BYTES: Final = 10 * 10**9
BATCH_BYTES: Final = load.BULK_RECORDS * load.BULK_VALUE_BYTES  # at least: the values alone
FILL_SECONDS_MAX: Final = 300.0
SERVED_TIMEOUT_SECONDS: Final = 120.0
FSYNC: Final[Fsync] = "never"
TOPIC: Final = "killed"
SOON: Final = Threshold(of="value", at_most=2)


def restart(_: Start, folder: Path) -> Iterator[Outcome]:
    for partitions in PARTITIONS:
        found = [killed(folder / f"{partitions}-{number}", partitions) for number in range(ROUNDS)]
        for place, (name, threshold) in enumerate(
            (("ready", SOON), ("the first partition is served", None), ("all partitions are served", None))
        ):
            yield Outcome(
                name=f"killed with 10 GB just written to {partitions:,} partition{'s'[: partitions > 1]}: until {name}",
                fsync=FSYNC,
                acks="1",
                unit="s",
                rounds=tuple(one[place] for one in found),
                threshold=threshold,
            )


def killed(folder: Path, partitions: int) -> tuple[float, float, float]:
    """Fill a broker, kill it and start it again: the seconds until ready, one partition and all of them are served."""
    folder.mkdir()
    requests = WRITTEN_BYTES // BATCH_BYTES // partitions * partitions  # each partition gets the same
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        process, server = started(stack, folder)
        Brokers(servers=(server,)).create_topic(TOPIC, partitions)
        work = {"partitions": partitions, "seconds_max": FILL_SECONDS_MAX}
        if (sent := load.measured(server, "bulk", TOPIC, requests, **work).requests) < requests:
            raise Refused(f"only {sent} of {requests} MB were written in {FILL_SECONDS_MAX} s")
        process.kill()
        process.wait()
        began = time.perf_counter()
        _, server = started(stack, folder)
        ready = time.perf_counter() - began
        first, last = served(server, partitions, requests // partitions * load.BULK_RECORDS)
        return ready, first - began, last - began


def started(stack: ExitStack, folder: Path) -> tuple["subprocess.Popen[str]", Server]:
    log = folder / "tailrace.log"
    with log.open("ab") as errors:
        command = ours.command(folder / "data", FSYNC)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    stack.callback(stop, process)
    assert process.stdout is not None
    endpoints = read_endpoints(process.stdout.readline(), "tailrace", log)
    host, _, port = endpoints["kafka"].rpartition(":")
    return process, Server(name="tailrace", host=host, port=int(port), pid=process.pid, endpoints=endpoints)


def served(server: Server, partitions: int, end: int) -> tuple[float, float]:
    """When the first partition, and when the last one, told an end offset, which must not be lower than this."""
    left, first = list(range(partitions)), 0.0
    deadline = time.perf_counter() + SERVED_TIMEOUT_SECONDS
    with Connection(server.host, server.port) as connection:
        while left:
            told = frames.ends_told(connection.ask(frames.end_offsets(TOPIC, left)), TOPIC)
            if lost := [told[one][1] for one in left if told[one][0] == 0 and told[one][1] < end]:
                raise Refused(f"{len(lost)} partitions end below offset {end}, such as at {lost[0]}")
            left = [one for one in left if told[one][0] != 0]
            now = time.perf_counter()
            if len(left) < partitions and not first:
                first = now
            if now > deadline:
                raise Refused(f"{len(left)} partitions are not served after {SERVED_TIMEOUT_SECONDS} s")
    return first, now
