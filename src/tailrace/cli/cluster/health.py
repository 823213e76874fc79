"""`tailrace cluster health`: when brokers, and producers and consumers of the HTTP queue, were last seen."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.own_client import ask, connected
from tailrace.cli.output import print_json, print_table
from tailrace.client.cluster import Cluster
from tailrace.client.last_seen import LastSeen, Seen


def show_health(access: Access, *, as_json: bool) -> None:
    with connected(access) as cluster:
        alive, seen = ask(_seen(cluster))
        now_ms = cluster.driver.wall_ms()
    rows = [_row(one, alive) for one in sorted(seen, key=lambda one: (one.kind, one.id))]
    known = [one.id for one in seen if one.kind == "broker"]
    rows += [{"kind": "broker", "id": one, "alive": True, "last_seen": None} for one in alive if one not in known]
    if as_json:
        print_json(rows)
    else:
        _show(rows, now_ms)


async def _seen(cluster: Cluster) -> tuple[list[int], list[Seen]]:
    response = await cluster.retry("list the brokers", lambda: cluster.refresh(()))
    return [one.node_id for one in response.brokers], await LastSeen(cluster).read()


def _row(one: Seen, alive: Sequence[int]) -> dict[str, Any]:
    at = datetime.fromtimestamp(one.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    row: dict[str, Any] = {"kind": one.kind, "id": one.id, "last_seen": at, "last_seen_ms": one.at_ms}
    return row | ({"alive": one.id in alive} if one.kind == "broker" else {"topic": one.topic})


def _show(rows: Sequence[dict[str, Any]], now_ms: int) -> None:
    def ago(row: dict[str, Any]) -> str:
        return f"{max(0, now_ms - row['last_seen_ms']) / 1000:.0f} s ago" if row["last_seen"] else "-"

    def state(row: dict[str, Any]) -> str:
        return str(row.get("topic", "")) if "alive" not in row else "alive" if row["alive"] else "gone"

    table = [[row["kind"], row["id"], state(row), row["last_seen"] or "-", ago(row)] for row in rows]
    print_table(["what", "id", "topic or state", "last seen", ""], table)
