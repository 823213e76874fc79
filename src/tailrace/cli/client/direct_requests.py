"""Kafka requests over our own socket, for APIs that confluent-kafka does not offer. Works with any Kafka broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import CLIENT_ID
from tailrace.cli.failure import Failed, Misused
from tailrace.client.faults import ClientError, ConnectionLost, SecurityRefused
from tailrace.client.secured_connection import open_connection
from tailrace.model.addresses import Address, parse_addresses
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest

TIMEOUT_S: Final = 10.0


class BrokerConnection:
    """A blocking connection to one broker; calling it with a request returns the response."""

    def __init__(self, access: Access, address: Address) -> None:
        self._address = address
        self._connection = open_connection(
            address, TIMEOUT_S, client_id=CLIENT_ID, tls=access.tls, sasl=access.security.sasl
        )

    def __call__(self, request: object) -> Any:
        with _reported(f"{self._address} did not answer"):
            return self._connection.ask(request)

    def knows(self, api_key: int) -> bool:
        return self._connection.exchange.offers(api_key)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def connect_any(access: Access) -> Iterator[BrokerConnection]:
    """A connection to the first of these brokers that answers."""
    try:
        addresses = parse_addresses(access.bootstrap)
    except ValueError as error:
        raise Misused(f"--bootstrap {access}: {error}.") from None
    for at, address in enumerate(addresses):
        try:
            connection = BrokerConnection(access, address)
        except (SecurityRefused, ConnectionLost) as error:
            raise Failed(f"{error}.\n{access.advice}") from None
        except (OSError, ClientError) as error:
            if at + 1 < len(addresses):
                continue
            raise Failed(
                f"no broker at {access}: {getattr(error, 'strerror', None) or error}.\n"
                "Start one with `tailrace serve`, or name another with --bootstrap or TAILRACE_BOOTSTRAP."
            ) from None
        try:
            yield connection
        finally:
            connection.close()
        return


@contextmanager
def connect_to(access: Access, host: str, port: int) -> Iterator[BrokerConnection]:
    """A connection to this broker, whose address the cluster gave."""
    with _reported(f"{host}:{port} cannot be reached"):
        connection = BrokerConnection(access, Address(host, port))
    try:
        yield connection
    finally:
        connection.close()


def brokers(connection: BrokerConnection) -> list[Address]:
    """The addresses of all live brokers of the cluster."""
    return [Address(one.host, one.port) for one in connection(DescribeClusterRequest()).brokers]


def error_name(code: int) -> str:
    """The name of an error code in Kafka's documentation."""
    return Error(code).name


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Turn connection and protocol errors into `Failed`."""
    try:
        yield
    except (OSError, ClientError) as error:
        raise Failed(f"{what}: {getattr(error, 'strerror', None) or error}.") from None
