"""Short calls about share groups, for tests without an event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tailrace.client.admin import change_group_settings
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.share_admin import share_group_offsets
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports

T = TypeVar("T")


def ask(bootstrap: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
    async def run() -> T:
        ports = system_ports()
        cluster = Cluster(AsyncioDriver(ports.net, ports.clock, ports.random), parse_addresses(bootstrap))
        try:
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(run())


def change_group(bootstrap: str, group: str, settings: Mapping[str, str]) -> None:
    ask(bootstrap, lambda cluster: change_group_settings(cluster, group, dict(settings)))


def unfinished(bootstrap: str, group: str) -> int | None:
    """How many records a share group has not finished; None: not known at the moment."""
    lags = [one.lag for one in ask(bootstrap, lambda cluster: share_group_offsets(cluster, group)).values()]
    return None if not lags or None in lags else sum(lag for lag in lags if lag is not None)
