"""The client of commands about topics, groups and queues: our own, so they need no extra package.

It speaks Kafka's protocol, so these commands work with any Kafka broker. Admin requests need no event loop; consuming a
queue does.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, CLIENT_ID, check_reachable
from tailrace.cli.failure import Failed
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, Refused, Unavailable
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports
from tailrace.ports.tls import ClientTls

T = TypeVar("T")

LIMITS: Final = Limits(request_s=ANSWER_TIMEOUT_S, retry_s=ANSWER_TIMEOUT_S, unknown_s=0.0)


@contextmanager
def connected(access: Access) -> Iterator[Cluster]:
    """The cluster that one of these brokers belongs to. The errors of the client become `Failed`."""
    check_reachable(access)
    driver = BlockingDriver(CLIENT_ID, timeout_s=ANSWER_TIMEOUT_S, tls=access.tls, sasl=access.security.sasl)
    cluster = Cluster(driver, parse_addresses(access.bootstrap), LIMITS)
    try:
        with _reported(access):
            yield cluster
    finally:
        cluster.close()


def run_connected(access: Access, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    """Run some work on an event loop, with the cluster that one of these brokers belongs to; errors as above."""
    check_reachable(access)

    async def run() -> T:
        ports = system_ports()
        tls = None if access.tls is None else ClientTls(access.tls)
        driver = AsyncioDriver(ports.net, ports.clock, ports.random, CLIENT_ID, tls=tls, sasl=access.security.sasl)
        cluster = Cluster(driver, parse_addresses(access.bootstrap), LIMITS)
        try:
            return await work(cluster)
        finally:
            cluster.close()

    with _reported(access):
        return asyncio.run(run())


@contextmanager
def _reported(access: Access) -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        raise Failed(sentence(refused)) from None
    except Unavailable as error:
        raise Failed(f"{error}.\n{access.advice}" if access.config else f"{error}.") from None
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
