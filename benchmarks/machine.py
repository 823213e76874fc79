"""The benchmarks' folder, and facts about the machine: its load, and the latency of its disk."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.latency import Spread
from benchmarks.outcomes import Outcome

DEFAULT_PLACE: Final = "/var/tmp"  # on a disk by convention, where /tmp may be memory
APPEND_BYTES: Final = 4096
SYNCS: Final = 200


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder; `BENCH_DIR` selects the disk."""
    place = os.environ.get("BENCH_DIR", DEFAULT_PLACE)
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-", dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def fsync_latency(folder: Path) -> Spread:
    """Append 4 KB to a file and sync it, repeatedly."""
    taken = []
    path = folder / "fsync"
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(SYNCS):
        os.write(file, bytes(APPEND_BYTES))
        began = time.perf_counter()
        os.fdatasync(file)
        taken.append(time.perf_counter() - began)
    os.close(file)
    path.unlink()
    return Spread.of(taken)


def machine_outcomes(folder: Path) -> Iterator[Outcome]:
    busy = os.getloadavg()[0]  # of the minute before the run: the load of other processes
    yield Outcome(name="the machine: load before the run", fsync="-", acks="-", unit="processes", rounds=(busy,))
    spread = fsync_latency(folder)
    for rank, value in (("p50", spread.p50_ms), ("p99", spread.p99_ms)):
        yield Outcome(name=f"the disk: fdatasync of 4 KB, {rank}", fsync="-", acks="-", unit="ms", rounds=(value,))
