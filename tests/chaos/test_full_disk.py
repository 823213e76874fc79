"""A real broker on a real disk that is full: a small tmpfs where one can be mounted, else a limit on file sizes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.connection import Connection
from tailrace.ports.net import SystemNet
from tailrace.records.build import build_batch
from tailrace.records.opened import batches
from tailrace.records.record import NewRecord
from tailrace.testing import Broker, BrokerFailed
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

VALUE = b"x" * 100_000


def with_client(broker: Broker, work: Callable[[Connection], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        client = await Connection.connect(SystemNet(), "127.0.0.1", broker.port)
        async with asyncio.timeout(20):
            answer = await work(client)
        client.close()
        return answer

    return asyncio.run(run())


def produce(broker: Broker) -> int:
    """Send one large record; the error code."""
    batch = bytes(build_batch([NewRecord(value=VALUE, timestamp=int(time.time() * 1000))]))
    topic = TopicToProduce(name="t", partitions=(PartitionToProduce(partition=0, records=batch),))
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topics=(topic,))
    answer = with_client(broker, lambda client: client.call(request, 9))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def count(broker: Broker) -> int:
    """How many records a consumer finds."""

    async def read(client: Connection) -> int:
        found = offset = 0
        while True:
            wanted = PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name="t", partitions=(wanted,)),))
            answer = (await client.call(request, 11)).topics[0].partitions[0]
            assert answer.error_code == 0
            if not answer.records:
                assert offset == answer.high_watermark
                return found
            for _, header in batches(answer.records):
                found += 0 if header.is_control else header.records
                offset = header.last_offset + 1

    return int(with_client(broker, read))


def make_topic(broker: Broker, name: str = "t") -> int:
    topic = NewTopic(name=name, num_partitions=1, replication_factor=1)
    answer = with_client(broker, lambda client: client.call(CreateTopicsRequest(topics=(topic,)), 7))
    code: int = answer.topics[0].error_code
    return code


def fill(folder: Path) -> Path:
    """Take all the room there is."""
    ballast = folder / "ballast"
    with open(ballast, "ab", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


@pytest.mark.chaos
def test_a_broker_on_a_full_disk_refuses_reads_on_and_resumes(small_disk: Path) -> None:
    with Broker(data_dir=small_disk / "data", log_flush_offset_checkpoint_interval_ms=100) as broker:
        assert make_topic(broker) == 0
        taken = 0
        while (code := produce(broker)) == 0:
            taken += 1
        assert code == Error.KAFKA_STORAGE_ERROR
        assert taken > 10
        ballast = fill(small_disk)
        assert produce(broker) == Error.KAFKA_STORAGE_ERROR
        assert make_topic(broker, "another") in (0, Error.KAFKA_STORAGE_ERROR)
        assert count(broker) == taken
        deadline = time.monotonic() + 10
        while "checkpoint failed" not in broker.log:
            assert time.monotonic() < deadline, broker.log
            produce(broker)
        ballast.unlink()
        (segment,) = [path for path in small_disk.glob("data/*/*.log") if path.stat().st_size > len(VALUE)]
        assert segment.stat().st_size % (segment.stat().st_size // taken) == 0  # whole batches, all of one size
        broker.kill()
        broker.restart()
        assert count(broker) == taken


@pytest.mark.chaos
def test_a_broker_that_finds_a_full_disk_says_so(small_disk: Path) -> None:
    ballast = fill(small_disk)
    broker = Broker(data_dir=small_disk / "data")
    with pytest.raises(BrokerFailed, match=r"cannot start(.|\n)*No space left") as refused:
        broker.start()
    assert "Traceback" not in str(refused.value)
    ballast.unlink()
    with broker:
        assert make_topic(broker) == 0
        assert count(broker) == 0


@pytest.mark.chaos
def test_a_limit_on_file_sizes_is_a_full_disk_for_one_partition(tmp_path: Path) -> None:
    """Where nothing can be mounted: RLIMIT_FSIZE makes a write fail with EFBIG, half of it done."""
    script = (
        "import resource, signal, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000));"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from tailrace.cli.main import main; sys.argv = ['tailrace', *sys.argv[1:]]; sys.exit(main())"
    )
    words = ["serve", "--kafka-port", "0", "--data-dir", str(tmp_path / "data"), "--until-eof"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().decode()
        assert line.startswith("ready"), process.stderr.read().decode()
        reached = Broker(data_dir=tmp_path / "unused")
        reached.endpoints = {"kafka": line.split("=")[1].split()[0]}
        assert make_topic(reached) == 0
        codes = [produce(reached) for _ in range(5)]
        assert codes == [0, 0] + [Error.KAFKA_STORAGE_ERROR] * 3
        assert count(reached) == 2
        (segment,) = [path for path in tmp_path.glob("data/*/*.log") if path.stat().st_size > len(VALUE)]
        assert segment.stat().st_size < 2 * len(VALUE) + 1000
        process.communicate(timeout=20)
    assert process.returncode == 0
    with Broker(data_dir=tmp_path / "data") as broker:
        assert count(broker) == 2
        assert produce(broker) == 0
