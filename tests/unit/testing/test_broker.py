"""`tailrace.testing.Broker`: a real process that tests can start, kill, restart and never lose."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.model.settings import SettingError
from tailrace.testing import Broker, BrokerFailed
from tests.unit.cli.program import DEADLINE_S


def test_what_was_confirmed_survives_a_kill(topic: str) -> None:
    with Broker() as broker:
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


def test_its_data_goes_unless_it_was_given_a_place(tmp_path: Path) -> None:
    with Broker() as broker:
        own = broker.data_dir
        assert own.is_dir()
    assert not own.exists()
    with Broker(data_dir=tmp_path / "kept") as broker:
        assert broker.log
    assert (tmp_path / "kept" / "meta.properties").is_file()


def test_wrong_settings_show_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        Broker(num_partition=3)


def test_the_callers_variables_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_ADVERTISED_HOST", "elsewhere.example")
    with Broker() as broker:
        assert broker.bootstrap.startswith("127.0.0.1:")


def test_a_failed_start_shows_why(broker: Broker) -> None:
    with pytest.raises(BrokerFailed, match=r"exit code 1(.|\n)*in use by process"), Broker(data_dir=broker.data_dir):
        pass


def test_it_shows_itself(broker: Broker) -> None:
    assert repr(broker) == f"<Broker at {broker.bootstrap}, process {broker.pid}, data in {broker.data_dir}>"
    assert repr(Broker(data_dir="d")) == "<Broker not running, data in d>"


def test_stopping_twice_and_killing_the_dead_is_fine() -> None:
    with Broker() as broker:
        broker.stop()
        broker.stop()
        broker.kill()
        with pytest.raises(BrokerFailed, match="does not run"):
            _ = broker.pid


def test_a_broker_that_died_by_itself_is_not_taken_for_a_clean_stop() -> None:
    broker = Broker()
    with pytest.raises(BrokerFailed, match="exit code -9"), broker:
        os.kill(broker.pid, signal.SIGKILL)


def test_a_paused_broker_answers_nobody_until_it_is_resumed() -> None:
    with Broker() as broker:
        broker.pause()
        with socket.create_connection(("127.0.0.1", broker.port)) as client:
            client.sendall(b"\xff\xff\xff\xff")  # a length that no request has: the broker closes the connection
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(1)
            broker.resume()
            client.settimeout(DEADLINE_S)
            assert client.recv(1) == b""
        broker.pause()  # and it stops all the same


def test_its_log_can_be_followed() -> None:
    lines: list[str] = []
    with Broker(on_log=lines.append) as broker:
        pass
    assert any("is up at" in line for line in lines)
    assert broker.log.splitlines() == lines[-20:]
    with pytest.raises(BrokerFailed, match=r"exit code -9\.\nIts log ends:"), Broker(on_log=lines.append) as broker:
        os.kill(broker.pid, signal.SIGKILL)


@pytest.mark.parametrize("then", ["", "broker.pause()"])
def test_it_ends_with_the_process_that_started_it(then: str) -> None:
    """However that one dies: here by SIGKILL, when nothing of it can tidy up. A paused one sees no end of its input."""
    code = f"""
from tailrace.testing import Broker
broker = Broker()
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
