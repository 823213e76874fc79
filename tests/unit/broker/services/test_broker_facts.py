"""The facts that a broker shows beside its settings, under Kafka's names."""

from typing import Any

import pytest

from tailrace.broker.services.broker_facts import BrokerFact, broker_facts
from tailrace.cluster.brokers import Broker
from tailrace.model.addresses import Address
from tailrace.model.ids import NO_ID, BrokerId
from tailrace.model.settings import Settings, rows
from tailrace.model.topics import TOPIC_SETTINGS

ENDPOINTS = {"kafka": Address("h", 9092)}


def broker(number: int) -> Broker:
    return Broker(
        id=BrokerId(number),
        directory=NO_ID,
        incarnation=NO_ID,
        endpoints=ENDPOINTS,
        peer_host=f"p{number}",
        peer_port=number,
        rack=None,
        fenced=False,
        features={},
    )


def facts(
    me: int = 1, endpoints: Any = ENDPOINTS, voters: tuple[int, ...] = (1,), known: tuple[int, ...] = (1,), **given: Any
) -> dict[str, BrokerFact]:
    brokers = {BrokerId(number): broker(number) for number in known}
    found = broker_facts(Settings(**given), BrokerId(me), endpoints, [BrokerId(one) for one in voters], brokers, {})
    return {fact.name: fact for fact in found}


def test_a_broker_with_default_settings_shows_defaults() -> None:
    shown = facts()
    started = [name for name, fact in shown.items() if not fact.is_default]
    assert started == ["broker.id", "node.id", "process.roles", "controller.quorum.voters"]
    assert shown["listeners"].value == "PLAINTEXT://127.0.0.1:9092"
    assert shown["log.retention.hours"].value == "168"
    assert shown["log.segment.delete.delay.ms"].value == str(TOPIC_SETTINGS["file.delete.delay.ms"].default)
    assert shown["unclean.leader.election.enable"].value == "false"


def test_only_the_broker_id_is_shown_in_place_of_a_setting() -> None:
    assert [name for name in facts() if name in rows()] == ["broker.id"]


def test_an_ipv6_listener_is_in_brackets() -> None:
    shown = facts(endpoints={"kafka": Address("fe80::1", 9)}, host="::")
    assert shown["listeners"].value == "PLAINTEXT://[::]:9"
    assert shown["advertised.listeners"].value == "PLAINTEXT://[fe80::1]:9"
    assert not shown["listeners"].is_default


def test_listeners_are_left_out_while_the_broker_has_none() -> None:
    assert [name for name in facts(endpoints={}) if "listener" in name] == []


def test_voters_are_shown_when_all_their_addresses_are_known() -> None:
    shown = facts(me=4, voters=(3, 1, 2), known=(1, 2, 3, 4))
    assert shown["controller.quorum.voters"].value == "3@p3:3,1@p1:1,2@p2:2"
    assert shown["process.roles"].value == "broker"
    assert "controller.quorum.voters" not in facts(voters=(1, 2), known=(1,))
    assert "controller.quorum.voters" not in facts(voters=())


@pytest.mark.parametrize(
    ("retention_ms", "hours", "minutes"),
    [(7_200_000, "2", "120"), (5_400_000, None, "90"), (61_000, None, None), (-1, "-1", "-1"), (0, "0", "0")],
)
def test_a_time_is_shown_in_the_units_that_express_it(
    retention_ms: int, hours: str | None, minutes: str | None
) -> None:
    shown = facts(log_retention_ms=retention_ms)
    expected = {"log.retention.hours": hours, "log.retention.minutes": minutes}
    assert {name: shown[name].value if name in shown else None for name in expected} == expected
