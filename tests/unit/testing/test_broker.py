"""`tailrace.testing.Broker`: what a broker for tests has beside `tailrace.local.broker`."""

import socket

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from tailrace.model.settings import SettingError
from tailrace.testing import Broker

DEADLINE_S = 60.0


def settings_of(broker: Broker) -> dict[str, str | None]:
    """As DescribeConfigs shows them."""
    wanted = ConfigResource(ConfigResource.Type.BROKER, "1")
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = client.describe_configs([wanted])[wanted].result(DEADLINE_S)
    return {name: entry.value for name, entry in described.items()}


def test_groups_are_quick_unless_the_test_sets_otherwise() -> None:
    with Broker(group_consumer_heartbeat_interval_ms=1234) as broker:
        settings = settings_of(broker)
    assert settings["group.initial.rebalance.delay.ms"] == "0"
    assert settings["group.consumer.heartbeat.interval.ms"] == "1234"


def test_wrong_settings_are_refused_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        Broker(num_partition=3)


def test_a_paused_broker_does_not_answer_until_it_is_resumed() -> None:
    with Broker() as broker:
        broker.pause()
        assert (broker.is_paused, broker.is_running) == (True, True)
        with socket.create_connection(("127.0.0.1", broker.port)) as client:
            client.sendall(b"\xff\xff\xff\xff")  # a length that no request has: the broker closes the connection
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(1)
            broker.resume()
            assert not broker.is_paused
            client.settimeout(DEADLINE_S)
            assert client.recv(1) == b""
        broker.pause()  # it is stopped all the same when the block ends


def test_a_broker_is_not_paused_after_a_restart() -> None:
    with Broker() as broker:
        broker.pause()
        broker.kill()
        assert not broker.is_paused
        broker.restart()
        assert not broker.is_paused
