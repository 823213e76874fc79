"""A log with records of a later release: the broker names record, version and offset, says what to do, and stops."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace import __version__
from tailrace.broker.later_release import LaterRelease
from tailrace.broker.node import CannotStart, Node
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.starting import start_broker
from tailrace.cluster.records import FeatureRaised
from tailrace.doors.kafka import open_door
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.stored import encode_record
from tests.unit.broker.simulated import Brokers, simulated

UNKNOWN = b"\1\x63\7later"  # frame version 1, record type 99, version 7


def append(partition: Partition, value: bytes, key: bytes | None = None) -> int:
    """Append a record as a later release's coordinator would; its offset."""
    return partition.append_own(build_batch([NewRecord(key=key, value=value, timestamp=1)])).base_offset


def controller_of(brokers: Brokers) -> int:
    return next(one for one in brokers.ids if brokers[one].is_controller)


def failure_of(node: Node) -> str:
    failure = node.background.failed.exception()
    assert isinstance(failure, LaterRelease)
    return str(failure)


@simulated()
async def test_a_record_of_an_unknown_kind_in_the_metadata_stops_every_broker(brokers: Brokers) -> None:
    leader = controller_of(brokers)
    offset = brokers.within(leader, lambda: append(brokers[leader].metadata, UNKNOWN))
    await brokers.until(lambda: all(brokers[one].background.failed.done() for one in brokers.ids))
    for one in brokers.ids:
        assert failure_of(brokers[one]) == (
            f"__cluster_metadata holds a record that tailrace {__version__} does not know, at offset {offset}: "
            "record type 99, version 7; known are types 1 to 11. It was written by a later release: start this broker "
            "with that release; its data directory was not changed"
        )


@simulated()
async def test_an_unknown_version_of_a_known_record_is_named(brokers: Brokers) -> None:
    leader = controller_of(brokers)
    brokers.within(leader, lambda: append(brokers[leader].metadata, b"\1\1\x09later"))
    await brokers.until(lambda: all(brokers[one].background.failed.done() for one in brokers.ids))
    assert "record type 1 (TopicAdded), version 9; known are versions 0-0" in failure_of(brokers[1])


@simulated()
async def test_a_level_that_this_release_does_not_support_stops_every_broker(brokers: Brokers) -> None:
    leader = controller_of(brokers)
    raised = encode_record(FeatureRaised(name="metadata.version", level=9), 0)
    brokers.within(leader, lambda: append(brokers[leader].metadata, raised))
    await brokers.until(lambda: all(brokers[one].background.failed.done() for one in brokers.ids))
    assert failure_of(brokers[2]) == (
        f"this broker (tailrace {__version__}) supports metadata.version 1 to 4, the cluster is at metadata.version 9: "
        f"start it with tailrace > {__version__}"
    )


async def restarted(brokers: Brokers) -> str:
    """Stop the only broker and start it again; returns why the start fails, or why the broker stops after it."""
    await brokers.stop(1)
    try:
        await brokers.start(1)
        await brokers.until(lambda: brokers[1].background.failed.done())
    except CannotStart as error:
        return str(error)
    return failure_of(brokers[1])


@simulated(count=1, offsets_topic_num_partitions=1)
async def test_a_coordinators_record_that_is_not_known_stops_its_broker_when_it_takes_over(brokers: Brokers) -> None:
    await brokers.call(1, FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    await brokers.until(lambda: brokers.replica(1, "__consumer_offsets").leads)
    offset = brokers.within(1, lambda: append(brokers.replica(1, "__consumer_offsets"), b"\0\5later", b"\0\x63"))
    assert not brokers[1].background.failed.done(), "a leader does not replay its own writes"
    told = await restarted(brokers)
    assert (
        f"__consumer_offsets-0 holds a record that tailrace {__version__} does not know, at offset {offset}: " in told
    )
    assert "key type 99, version 5; known are key types 0, 1, 2, 3" in told


@simulated(count=1, transaction_state_log_num_partitions=1)
async def test_a_transactions_record_of_an_unknown_version_stops_its_broker(brokers: Brokers) -> None:
    await brokers.call(1, FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)), 4)
    await brokers.until(lambda: brokers.replica(1, "__transaction_state").leads)
    brokers.within(1, lambda: append(brokers.replica(1, "__transaction_state"), b"\0\x09later", b"\0\0\0\1x"))
    assert "TransactionLogValue, version 9; known are versions 0-1" in await restarted(brokers)


def leave_a_record_of_a_later_release(folder: Path) -> None:
    """Make a data directory whose metadata log ends with such a record, as a broker of the later release would."""

    async def life() -> None:
        node = await start_broker(system_ports(), Settings(data_dir=str(folder), kafka_port=0))
        append(node.metadata, UNKNOWN)
        await node.metadata.committed()
        await node.stop()

    asyncio.run(life())


def test_a_data_directory_of_a_later_release_is_refused_at_the_start(tmp_path: Path) -> None:
    leave_a_record_of_a_later_release(tmp_path)

    async def start() -> None:
        await start_broker(system_ports(), Settings(data_dir=str(tmp_path), kafka_port=0))

    with pytest.raises(CannotStart, match=r"__cluster_metadata holds a record .* record type 99, version 7"):
        asyncio.run(start())
    ran = serve(tmp_path)
    _, told = ran.communicate(timeout=30)
    assert ran.returncode == 1
    assert "tailrace: cannot start: __cluster_metadata holds a record" in told
    assert "Traceback" not in told


def test_a_running_broker_that_meets_such_a_record_ends_cleanly_with_exit_code_1(tmp_path: Path) -> None:
    async def life() -> tuple[str, int | None]:
        node = await start_broker(system_ports(), Settings(data_dir=str(tmp_path / "1"), kafka_port=0))
        door = await open_door(node)
        other = serve(tmp_path / "2", "--join", f"127.0.0.1:{door.port}")
        assert other.stdout is not None
        ready = await asyncio.to_thread(other.stdout.readline)
        assert ready.startswith("ready "), ready
        append(node.metadata, UNKNOWN)
        _, told = await asyncio.to_thread(other.communicate, timeout=30)
        door.close()
        await node.stop()
        assert isinstance(node.background.failed.exception(), LaterRelease)
        return told, other.returncode

    told, code = asyncio.run(life())
    assert code == 1
    assert "tailrace: stopped: __cluster_metadata holds a record" in told
    assert "Traceback" not in told
    assert (tmp_path / "2" / "clean-shutdown").exists()


def serve(folder: Path, *flags: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tailrace", "serve", "--kafka-port", "0", "--data-dir", str(folder), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
