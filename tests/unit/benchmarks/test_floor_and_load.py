"""The floor and the load generator count the same bytes; otherwise their ratios would be wrong."""

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.floor import Mode, Moved, serve_one
from benchmarks.load import Kind, Measured, Work, perform

DEADLINE_SECONDS = 20.0


def against_floor(mode: Mode, path: Path, kind: Kind, requests: int) -> tuple[Measured, Moved]:
    """One connection of the load generator to a floor in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        serve: Callable[[socket.socket, Mode, str], Moved] = serve_one
        floor: Future[Moved] = thread.submit(serve, listener, mode, str(path))
        host, port = listener.getsockname()
        work = Work(
            kind=kind, host=host, port=port, pid=os.getpid(), topic="floor", requests=requests, in_flight=7, floor=True
        )
        return perform(work), floor.result(DEADLINE_SECONDS)


@pytest.mark.parametrize(("kind", "requests"), [("bulk", 20), ("single", 1000), ("single", 3)])
def test_what_was_sent_was_received_and_written(tmp_path: Path, kind: Kind, requests: int) -> None:
    path = tmp_path / "floor"
    sent, received = against_floor("write", path, kind, requests)
    assert sent.requests == received.requests == requests
    assert sent.bytes == received.bytes == path.stat().st_size


def test_bulk_requests_are_a_megabyte(tmp_path: Path) -> None:
    sent, _ = against_floor("write", tmp_path / "floor", "bulk", 2)
    assert 1_000_000 < sent.bytes / sent.requests < 1_048_588, "Kafka's default max.message.bytes must let it pass"


@pytest.mark.parametrize("size", [0, 1, 8 * 1024 * 1024, 20_000_003])
def test_the_whole_file_was_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "floor"
    path.write_bytes(bytes(size))
    taken, given = against_floor("read", path, "catch-up", 0)
    assert taken.bytes == given.bytes == size
    assert taken.requests == given.requests
