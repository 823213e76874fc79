"""Brokers asked in Kafka's protocol over a socket of our own: for what the Kafka client behind the commands cannot ask.

Like it, this works against any Kafka broker."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tailrace.cli.failure import Failed, Misused
from tailrace.model.addresses import Address, parse_addresses
from tailrace.testing.blocking_request import ask, versions_of
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.primitives import WireError

TIMEOUT_S: Final = 10.0


class Asked:
    """One broker, and the answers that it gives."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection = socket.create_connection(address, TIMEOUT_S)
        self._versions = versions_of(self._connection)

    def __call__(self, request: object) -> Any:
        with _failing(f"{self._address} did not answer"):
            return ask(self._connection, request, self._versions)

    def knows(self, api_key: int) -> bool:
        return api_key in self._versions

    def close(self) -> None:
        self._connection.close()


@contextmanager
def asking_any(bootstrap: str) -> Iterator[Asked]:
    """The first broker of these that answers."""
    try:
        addresses = parse_addresses(bootstrap)
    except ValueError as error:
        raise Misused(f"--bootstrap {bootstrap}: {error}.") from None
    for at, address in enumerate(addresses):
        try:
            asked = Asked(address)
        except (OSError, WireError) as error:
            if at + 1 < len(addresses):
                continue
            raise Failed(
                f"no broker at {bootstrap}: {getattr(error, 'strerror', None) or error}.\n"
                "Start one with `tailrace serve`, or name another with --bootstrap or TAILRACE_BOOTSTRAP."
            ) from None
        try:
            yield asked
        finally:
            asked.close()
        return


@contextmanager
def asking_one(host: str, port: int) -> Iterator[Asked]:
    """A broker that the cluster has named."""
    with _failing(f"{host}:{port} cannot be reached"):
        asked = Asked(Address(host, port))
    try:
        yield asked
    finally:
        asked.close()


def brokers(asked: Asked) -> list[Address]:
    """All brokers of the cluster that are there."""
    return [Address(one.host, one.port) for one in asked(DescribeClusterRequest()).brokers]


def name_of(code: int) -> str:
    """An error as documentation knows it."""
    return Error(code).name


@contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, WireError) as error:
        raise Failed(f"{what}: {getattr(error, 'strerror', None) or error}.") from None
