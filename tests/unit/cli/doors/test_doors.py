"""`tailrace doors`: the doors of each broker, and numbers that follow what clients do."""

import json
import socket

from tailrace.testing import Broker
from tests.unit.cli.program import DEAD_ADDRESS, run_tailrace


def test_it_shows_the_doors_of_a_broker_with_their_connections(broker: Broker) -> None:
    def kafka() -> dict[str, object]:
        ran = run_tailrace("doors", "--json", "--interval", "0.1", "--bootstrap", broker.bootstrap)
        assert ran.code == 0, ran.err
        (row,) = json.loads(ran.out)
        assert (row["broker"], row["door"], row["endpoint"]) == (1, "kafka", broker.bootstrap)
        found: dict[str, object] = row
        return found

    before = kafka()
    with socket.create_connection(("127.0.0.1", broker.port)):
        during = kafka()
    after = kafka()
    assert during["connections"] == int(str(before["connections"])) + 1
    assert int(str(after["accepted"])) > int(str(during["accepted"])) > int(str(before["accepted"]))


def test_the_table_has_a_line_for_each_door(broker: Broker) -> None:
    ran = run_tailrace("doors", "--interval", "0.1", "--bootstrap", broker.bootstrap)
    assert ran.code == 0, ran.err
    assert ran.out.split()[:4] == ["broker", "door", "address", "connections"]
    assert f"kafka   {broker.bootstrap}" in ran.out


def test_a_broker_that_is_not_there_is_named() -> None:
    ran = run_tailrace("doors", "--bootstrap", DEAD_ADDRESS)
    assert ran.code == 1
    assert f"no broker at {DEAD_ADDRESS}" in ran.err
