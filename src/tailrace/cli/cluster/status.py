"""`tailrace cluster status`: the cluster as one broker describes it, for people and for scripts.

A partition is offline when it has no leader, and under-replicated when fewer replicas are in sync than it has; most
offline partitions are both. The first broker of `--bootstrap` that answers is asked; it may be cut off from the others.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, TypedDict

from tailrace.cli.client.client_config import Access
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import print_json, print_table
from tailrace.client.faults import ConnectionLost, SecurityRefused
from tailrace.local.cluster_view import (
    ClusterView,
    DamageView,
    NoView,
    PartitionView,
    damaged_replicas,
    look_at_any,
)
from tailrace.local.listening_pids import listening_pids
from tailrace.model.addresses import parse_addresses

LOOK_AGAIN_S: Final = 1.0
SHOWN_MAX: Final = 20  # unhealthy partitions in the table; JSON has them all
CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


class BrokerStatus(TypedDict):
    id: int
    host: str
    port: int
    rack: str | None
    pid: int | None
    state: str
    leaders: int
    replicas: int


class PartitionStatus(TypedDict):
    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]


class DamageStatus(TypedDict):
    topic: str
    partition: int
    broker: int
    where: str


class ClusterStatus(TypedDict):
    cluster_id: str
    controller: int | None
    voters: list[int] | None
    brokers: list[BrokerStatus]
    partitions: int
    under_replicated: list[PartitionStatus]
    offline: list[PartitionStatus]
    damaged: list[DamageStatus]


def show_status(access: Access, *, watch: bool, as_json: bool) -> None:
    if not watch:
        _show(status_of(access), as_json)
        return
    try:
        while True:
            _show_again(access, as_json)
            time.sleep(LOOK_AGAIN_S)
    except KeyboardInterrupt:
        return


def status_of(access: Access) -> ClusterStatus:
    try:
        addresses = parse_addresses(access.bootstrap)
    except ValueError as error:
        raise Misused(f"--bootstrap {access}: {error}.") from None
    try:
        view = look_at_any(addresses, tls=access.tls, sasl=access.security.sasl)
    except NoView as error:
        if isinstance(error.__cause__, SecurityRefused | ConnectionLost):
            raise Failed(f"no broker answers: {error}.\n{access.advice}") from None
        raise Failed(
            f"no broker answers: {error}.\n"
            "Start a cluster with `tailrace cluster up`, or name a broker with --bootstrap or TAILRACE_BOOTSTRAP."
        ) from None
    return _status(view, damaged_replicas(view.brokers, tls=access.tls, sasl=access.security.sasl))


def _status(view: ClusterView, damaged: Sequence[DamageView] = ()) -> ClusterStatus:
    pids = listening_pids((one.host, one.port) for one in view.brokers)
    leaders = Counter(one.leader for one in view.partitions)
    replicas = Counter(replica for one in view.partitions for replica in one.replicas)
    return {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "voters": None if view.voters is None else list(view.voters),
        "brokers": [
            {
                "id": one.id,
                "host": one.host,
                "port": one.port,
                "rack": one.rack,
                "pid": pids.get((one.host, one.port)),
                "state": "fenced" if one.is_fenced else "up",
                "leaders": leaders[one.id],
                "replicas": replicas[one.id],
            }
            for one in view.brokers
        ],
        "partitions": len(view.partitions),
        "under_replicated": [_partition(one) for one in view.partitions if one.is_under_replicated],
        "offline": [_partition(one) for one in view.partitions if one.leader is None],
        "damaged": [
            {"topic": one.topic, "partition": one.partition, "broker": one.broker, "where": one.where}
            for one in damaged
        ],
    }


def _partition(one: PartitionView) -> PartitionStatus:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "leader": one.leader,
        "replicas": list(one.replicas),
        "in_sync": list(one.in_sync),
    }


def _show_again(access: Access, as_json: bool) -> None:
    """One round of --watch; on a terminal it clears the screen. A cluster that does not answer may do so next time."""
    try:
        status, failure = status_of(access), ""
    except Failed as error:
        status, failure = None, str(error)
    if not as_json:
        clear = CLEAR_SCREEN if sys.stdout.isatty() else ""
        print(f"{clear}{time.strftime('%H:%M:%S')}, Ctrl-C ends")
    if status is not None:
        _show(status, as_json)
    elif as_json:
        print_json({"error": failure})
    else:
        print(failure)
    sys.stdout.flush()


def _show(status: ClusterStatus, as_json: bool) -> None:
    if as_json:
        print_json(status)
        return
    brokers = status["brokers"]
    controller = status["controller"] if status["controller"] is not None else "none"
    voters = "" if status["voters"] is None else f", metadata voters {_ids(status['voters']) or 'none'}"
    print(f"cluster {status['cluster_id']}, controller {controller}{voters}")
    columns = ("broker", "state", "address", "rack", "pid", "leaders", "replicas")
    print_table(columns, [_row(one) for one in brokers])
    for one in status["damaged"][:SHOWN_MAX]:
        print(f"damaged: {one['topic']}-{one['partition']} on broker {one['broker']}: {one['where']}")
    unhealthy = {(one["topic"], one["partition"]): one for one in [*status["offline"], *status["under_replicated"]]}
    if not unhealthy:
        print(f"{_partitions(status)}, all with a leader, all replicas in sync")
        return
    print(
        f"{_partitions(status)}, {len(status['offline'])} without a leader, "
        f"{len(status['under_replicated'])} under-replicated:"
    )
    print_table(("topic", "partition", "leader", "replicas", "in sync"), _unhealthy_rows(list(unhealthy.values())))


def _partitions(status: ClusterStatus) -> str:
    return "1 partition" if status["partitions"] == 1 else f"{status['partitions']:,} partitions"


def _row(one: BrokerStatus) -> tuple[object, ...]:
    address, pid = (
        f"{one['host']}:{one['port']}",
        str(one["pid"] or ""),
    )  # as text: no thousands separators
    return one["id"], one["state"], address, one["rack"] or "", pid, one["leaders"], one["replicas"]


def _unhealthy_rows(partitions: list[PartitionStatus]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (
            one["topic"],
            one["partition"],
            "none" if one["leader"] is None else one["leader"],
            _ids(one["replicas"]),
            _ids(one["in_sync"]),
        )
        for one in partitions[:SHOWN_MAX]
    ]
    more = len(partitions) - SHOWN_MAX
    return [*rows, (f"… and {more} more, in --json", "", "", "", "")] if more > 0 else rows


def _ids(ids: list[int]) -> str:
    return ",".join(map(str, ids))
