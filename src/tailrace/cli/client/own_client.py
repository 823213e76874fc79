"""The client of commands about topics, groups and queues: our own, so they need no extra package.

It speaks Kafka's protocol, so these commands work with any Kafka broker. Admin requests need no event loop; consuming a
queue does.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, check_reachable
from tailrace.cli.failure import Failed
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, Refused
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports

T = TypeVar("T")

LIMITS: Final = Limits(request_s=ANSWER_TIMEOUT_S, retry_s=ANSWER_TIMEOUT_S, unknown_s=0.0)


@contextmanager
def connected(bootstrap: str) -> Iterator[Cluster]:
    """The cluster that one of these brokers belongs to. The errors of the client become `Failed`."""
    check_reachable(bootstrap)
    driver = BlockingDriver("tailrace-cli", timeout_s=ANSWER_TIMEOUT_S)
    cluster = Cluster(driver, parse_addresses(bootstrap), LIMITS)
    try:
        with _reported():
            yield cluster
    finally:
        cluster.close()


def run_connected(bootstrap: str, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    """Run some work on an event loop, with the cluster that one of these brokers belongs to; errors as above."""
    check_reachable(bootstrap)

    async def run() -> T:
        ports = system_ports()
        driver = AsyncioDriver(ports.net, ports.clock, ports.random, "tailrace-cli")
        cluster = Cluster(driver, parse_addresses(bootstrap), LIMITS)
        try:
            return await work(cluster)
        finally:
            cluster.close()

    with _reported():
        return asyncio.run(run())


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        raise Failed(sentence(refused)) from None
    except ClientError as error:
        raise Failed(f"{error}.") from None


def ask(work: Coroutine[Any, Any, T]) -> T:
    """The result of a call of the client."""
    return run_blocking(work)


def sentence(refused: Refused) -> str:
    """What the broker refused and why, with the name of the error code in brackets."""
    name = refused.error.name
    why = (refused.message or name.replace("_", " ").capitalize()).rstrip(".")
    return f"cannot {refused.what}: {why} [{name}]."
