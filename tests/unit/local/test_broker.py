"""`tailrace.local.broker`: a broker process that can be started, killed, restarted, and that ends with its parent."""

import os
import select
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.local.broker import BrokerFailed, LocalBroker
from tailrace.model.settings import SettingError

DEADLINE_S = 60.0


def test_what_was_confirmed_survives_a_kill() -> None:
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    with LocalBroker() as broker:
        first_pid, first_address = broker.pid, broker.bootstrap
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce(topic, b"kept")
        assert producer.flush(DEADLINE_S) == 0
        broker.kill()
        broker.restart()
        assert broker.pid != first_pid
        assert broker.bootstrap == first_address
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"kept"
        consumer.close()


def test_temporary_data_is_removed_and_a_given_directory_is_kept(tmp_path: Path) -> None:
    with LocalBroker() as broker:
        own = broker.data_dir
        assert own.is_dir()
    assert not own.exists()
    with LocalBroker(data_dir=tmp_path / "kept") as broker:
        assert broker.log
    assert (tmp_path / "kept" / "meta.properties").is_file()


def test_wrong_settings_are_refused_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        LocalBroker(num_partition=3)


def test_settings_in_the_environment_of_this_process_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_ADVERTISED_HOST", "elsewhere.example")
    with LocalBroker() as broker:
        assert broker.bootstrap.startswith("127.0.0.1:")


def test_a_failed_start_shows_the_reason() -> None:
    with (
        LocalBroker() as broker,
        pytest.raises(BrokerFailed, match=r"exit code 1(.|\n)*in use by process"),
        LocalBroker(data_dir=broker.data_dir),
    ):
        pass


def test_repr() -> None:
    with LocalBroker() as broker:
        shown = f"<LocalBroker at {broker.bootstrap}, process {broker.pid}, data in {broker.data_dir}>"
        assert repr(broker) == shown
    assert repr(LocalBroker(data_dir="d")) == "<LocalBroker not running, data in d>"


def test_a_broker_that_is_not_running_can_be_stopped_and_killed() -> None:
    with LocalBroker() as broker:
        broker.stop()
        broker.stop()
        broker.kill()
        with pytest.raises(BrokerFailed, match="is not running"):
            _ = broker.pid


def test_a_broker_that_died_by_itself_did_not_stop_cleanly() -> None:
    broker = LocalBroker()
    with pytest.raises(BrokerFailed, match="exit code -9"), broker:
        os.kill(broker.pid, signal.SIGKILL)


def test_the_log_is_passed_on_line_by_line() -> None:
    lines: list[str] = []
    with LocalBroker(on_log=lines.append) as broker:
        pass
    assert any("is up at" in line for line in lines)
    assert broker.log.splitlines() == lines[-20:]
    failing = LocalBroker(on_log=lines.append)
    with pytest.raises(BrokerFailed, match=r"exit code -9\.\nIts log ends:"), failing:
        os.kill(failing.pid, signal.SIGKILL)


PAUSE = "os.kill(broker.pid, signal.SIGSTOP); os.waitid(os.P_PID, broker.pid, os.WSTOPPED | os.WNOWAIT)"


@pytest.mark.parametrize("then", ["", PAUSE], ids=["running", "paused"])
def test_a_broker_ends_with_the_process_that_started_it(then: str) -> None:
    """That process is killed, so it cannot clean up. A paused broker does not see the end of its standard input."""
    code = f"""
import os, signal
from tailrace.local.broker import LocalBroker
broker = LocalBroker()
broker.start()
{then}
print(broker.pid, flush=True)
input()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
    finally:
        parent.kill()
        parent.communicate()
    ended, _, _ = select.select([child], [], [], DEADLINE_S)
    os.close(child)
    assert ended
