"""`tailrace doors`: which doors are open on which broker, with their connections and rates.

Each broker is asked for its counters twice; the rates are those between the two. A gateway is no member of the cluster,
so its doors are not shown: to the brokers it is a client.
"""

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError, check
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked

BROKER: Final = 4  # Kafka's type of resource
PREFIX: Final = "door."
RATES: Final = ("requests", "received_bytes", "sent_bytes")


class Sample(NamedTuple):
    """What the brokers said of their doors, and when."""

    at: float
    doors: Mapping[tuple[BrokerId, str], Mapping[str, str]]  # by broker and listener
    silent: Mapping[BrokerId, str]  # brokers that did not answer, and why


def doors(
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds over which rates are measured.")
    ] = 1.0,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Show which doors are open on which broker, with connections and rates.

    \b
    Examples:
      tailrace doors
      tailrace doors --interval 10 --bootstrap 127.0.0.1:19092
      tailrace doors --json | jq '.[] | select(.door == "http").requests_per_s'
    """
    from tailrace.cli.client.own_client import ask, connected
    from tailrace.cli.failure import Failed
    from tailrace.cli.output import print_json

    with connected(access_of(bootstrap, client_config)) as cluster:
        first = ask(_sample(cluster))
        ask(cluster.driver.sleep(interval))
        second = ask(_sample(cluster))
    rows = [_row(first, second, broker, door) for broker, door in second.doors]
    if json:
        print_json(rows)
    else:
        _show(rows)
    if second.silent:
        why = "\n".join(f"broker {broker} does not answer: {reason}." for broker, reason in second.silent.items())
        raise Failed(why)


async def _sample(cluster: Cluster) -> Sample:
    await cluster.retry("list the brokers", lambda: cluster.refresh(()))
    found: dict[tuple[BrokerId, str], Mapping[str, str]] = {}
    silent = {}
    for broker, address in sorted(cluster.map.brokers.items()):
        try:
            doors = await _doors_of(cluster, broker, address)
        except (Retry, ClientError) as error:
            silent[broker] = str(error)
        else:
            found |= {(broker, listener): facts for listener, facts in doors.items()}
    return Sample(cluster.driver.now(), found, silent)


async def _doors_of(cluster: Cluster, broker: BrokerId, address: Address) -> Mapping[str, Mapping[str, str]]:
    """The facts of a broker's doors, by listener; a broker that is no Tailrace has the Kafka door only."""
    asked = ResourceAsked(resource_type=BROKER, resource_name=str(broker))
    (answer,) = (await cluster.call(address, DescribeConfigsRequest(resources=(asked,)))).results
    check(answer.error_code, f"describe broker {broker}", answer.error_message)
    facts = {one.name.removeprefix(PREFIX): one.value or "" for one in answer.configs if one.name.startswith(PREFIX)}
    doors = {listener: dict(one.split("=", 1) for one in value.split(",")) for listener, value in facts.items()}
    return doors or {"kafka": {"endpoint": str(address)}}


def _row(first: Sample, second: Sample, broker: BrokerId, door: str) -> dict[str, object]:
    before, now = first.doors.get((broker, door), {}), second.doors[broker, door]
    row: dict[str, object] = {"broker": broker, "door": door, "endpoint": now["endpoint"]}
    row |= {name: int(value) for name, value in now.items() if name != "endpoint"}
    for name in RATES:
        if name in now and name in before:
            row[f"{name}_per_s"] = max(0, int(now[name]) - int(before[name])) / (second.at - first.at)
    return row


def _show(rows: list[dict[str, object]]) -> None:
    from tailrace.cli.output import print_table

    columns = {
        "broker": "broker", "door": "door", "endpoint": "address", "connections": "connections",
        "accepted": "accepted", "requests_per_s": "requests/s", "received_bytes_per_s": "bytes in/s",
        "sent_bytes_per_s": "bytes out/s", "requests": "requests", "failed": "failed",
    }  # fmt: skip
    print_table(list(columns.values()), [[row.get(name, "-") for name in columns] for row in rows])
