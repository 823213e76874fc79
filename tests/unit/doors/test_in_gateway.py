"""A client door in a gateway: its upstream is reached over sockets, watched, and told from another cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.client.admin import create_topics
from tailrace.client.faults import Unavailable, WrongCluster
from tailrace.doors import in_gateway
from tailrace.doors.client_doors import stop_doors
from tailrace.doors.door import open_doors
from tailrace.doors.in_gateway import ITSELF, GatewayHost
from tailrace.model.addresses import Address
from tailrace.model.listeners import GRPC_LISTENER, HTTP_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.wire.messages.create_topics import NewTopic
from tests.unit.doors.kafka.served import Served, serving
from tests.unit.doors.line_door import LineDoor

DEADLINE_S = 10.0


@asynccontextmanager
async def gateway(*upstream: Address) -> AsyncIterator[tuple[GatewayHost, LineDoor]]:
    host = GatewayHost(system_ports(), Settings(http_port=0), upstream, tls=None, sasl=None)
    door = LineDoor(host)
    await open_doors(host, [door])
    try:
        yield host, door
    finally:
        await stop_doors(host, [door])
        await host.close()


def address(broker: Served) -> Address:
    return Address("127.0.0.1", broker.door.port)


def test_what_comes_in_by_its_door_is_in_the_log_of_the_upstream(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as broker, gateway(address(broker)) as (host, door):
            assert await host.reach() == broker.node.meta.cluster_id
            assert await host.has_share_groups()
            assert await create_topics(
                host.upstream.cluster, [NewTopic(name="orders", num_partitions=1, replication_factor=1)]
            ) == {"orders": None}
            reader, writer = await asyncio.open_connection(*door.endpoint)
            writer.write(b"orders two coffees\n")
            async with asyncio.timeout(DEADLINE_S):
                assert await reader.readline() == b"0\n"
            writer.close()

    asyncio.run(run())


def test_it_knows_only_itself_and_has_no_broker_to_stop() -> None:
    async def run() -> None:
        async with gateway(Address("127.0.0.1", 1)) as (host, door):
            assert await host.upstream.endpoints(HTTP_LISTENER) == {ITSELF: door.endpoint}
            assert await host.upstream.endpoints(GRPC_LISTENER) == {}
            assert host.upstream.broker_id is None
            assert host.upstream.request_stop is None

    asyncio.run(run())


def test_an_upstream_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_gateway, "FIRST_ANSWER_MAX_S", 0.1)

    async def run() -> None:
        async with gateway(Address("127.0.0.1", 1)) as (host, _):
            with pytest.raises(
                Unavailable, match=r"cannot reach the upstream within 0.1 s: 127.0.0.1:1 does not answer"
            ):
                await host.reach()

    asyncio.run(run())


def test_another_cluster_in_place_of_the_upstream_ends_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_gateway, "LOOK_AGAIN_S", 0.02)

    async def run() -> None:
        async with serving(tmp_path / "one") as one:
            where = address(one)
            host = GatewayHost(system_ports(), Settings(http_port=0), [where], tls=None, sasl=None)
            await host.reach()
            host.spawn(host.watch())
        async with serving(tmp_path / "other", kafka_port=where.port):
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(WrongCluster, match="answers, expected"):
                    await host.failed
        await host.upstream.close()
        await host.close()

    asyncio.run(run())
