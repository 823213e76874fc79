"""The Kafka client of `produce`, `consume`, `bench` and `demo`: confluent-kafka, imported on use.

These commands use only Kafka's protocol, so they work with any Kafka broker. librdkafka waits long and silently for a
broker that is down, so the address is checked first. Its errors become sentences, and its own log lines are kept off
the terminal.
"""

import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from tailrace.cli.client.client_config import DEFAULT_BOOTSTRAP, Access
from tailrace.cli.client.librdkafka_security import librdkafka_security
from tailrace.cli.failure import Failed, Misused
from tailrace.client.faults import ClientError, ConnectionLost, SecurityRefused
from tailrace.client.secured_connection import open_connection
from tailrace.model.addresses import Address

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 10.0
PORT_MAX: Final = 65535
CLIENT_ID: Final = "tailrace-cli"

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def admin(access: Access) -> "AdminClient":
    settings = _settings(access)
    from confluent_kafka.admin import AdminClient

    return AdminClient(settings)


def producer(access: Access, settings: Mapping[str, object]) -> "Producer":
    basis = _settings(access)
    from confluent_kafka import Producer

    return Producer({**basis, **settings})


def consumer(access: Access, settings: Mapping[str, object]) -> "Consumer":
    """A consumer for use with `assign`: the client requires a group id, but joins no group."""
    basis = _settings(access) | {"group.id": "tailrace-cli", "enable.auto.commit": False}
    from confluent_kafka import Consumer

    return Consumer({**basis, "auto.offset.reset": "error", **settings})


@contextmanager
def asking(access: Access, what: str) -> Iterator[None]:
    """Turn the client's exceptions into `Failed`: "cannot {what}: …", with the broker's address or error."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() == KafkaError._TIMED_OUT:
            raise Failed(f"cannot {what}: {access} did not answer within {ANSWER_TIMEOUT_S:g} s.") from None
        if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            raise Failed(f"cannot {what}: the connection to {access} broke; the broker's log may say why.") from None
        raise Failed(f"cannot {what}: {sentence(error)}.") from None


def answer(future: "Future[T]", access: Access, what: str) -> T:
    """The broker's result for one part of an admin request."""
    with asking(access, what):
        return future.result(2 * ANSWER_TIMEOUT_S)


def sentence(error: "KafkaError") -> str:
    """The text of a Kafka error without librdkafka's prefixes, and the name of its code in brackets."""
    text = str(error.str() or error.name()).strip().removeprefix("Broker: ").removeprefix("Local: ").rstrip(".")
    return f"{text} [{error.name()}]"


def partitions_of(list_topics: Callable[..., Any], topic: str, access: Access) -> list[int]:
    """The partition numbers of a topic; `list_topics` is a client's method of that name.

    A consumer's `list_topics` never creates the topic; that of a producer or admin client does, if brokers have
    auto.create.topics.enable."""
    with asking(access, f"find topic {topic}"):
        found = list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
    if found.error is not None:
        raise Failed(f"cannot find topic {topic}: {sentence(found.error)}.\n`tailrace topic list` lists the topics.")
    return sorted(found.partitions)


def check_installed() -> None:
    """Fail unless the Kafka client of the extra `client` is there."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise Failed(
            "this command needs the Kafka client confluent-kafka, which is not installed.\n"
            'Install it with: pip install "tailrace[client]"'
        ) from None


def _settings(access: Access) -> dict[str, Any]:
    check_installed()
    secured = librdkafka_security(access)
    check_reachable(access)
    own = {"bootstrap.servers": access.bootstrap, "client.id": CLIENT_ID, "log_level": 0, "error_cb": _ignore}
    return own | secured


def check_reachable(access: Access) -> None:
    """Fail unless one of the addresses accepts a connection, with the security that is asked for."""
    reason = ""
    for address in _addresses(access.bootstrap):
        try:
            socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            _check_security(access, address)
            return
    raise Failed(
        f"no broker at {access}: {reason}.\n"
        "Start one with `tailrace serve`, or name another with --bootstrap or TAILRACE_BOOTSTRAP."
    )


def _addresses(bootstrap: str) -> Iterator[Address]:
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise Misused(
                f"--bootstrap {bootstrap}: {address.strip()!r} is not HOST:PORT, such as {DEFAULT_BOOTSTRAP}."
            )
        if not 1 <= int(port) <= PORT_MAX:
            raise Misused(f"--bootstrap {bootstrap}: port {port} is out of range; ports are from 1 to {PORT_MAX}.")
        yield Address(host.strip("[]"), int(port))


def _check_security(access: Access, address: Address) -> None:
    """Fail if the broker does not accept a secured connection, or closes one: no retry would help."""
    try:
        open_connection(
            address, CONNECT_TIMEOUT_S, client_id=CLIENT_ID, tls=access.tls, sasl=access.security.sasl
        ).close()
    except ConnectionLost as lost:
        if not isinstance(lost.__cause__, TimeoutError):
            raise Failed(f"{lost}.\n{access.advice}") from None
    except SecurityRefused as refused:
        raise Failed(f"{refused}.\n{access.advice}") from None
    except (OSError, ClientError):
        return  # the command itself tries again, and reports it


def _ignore(error: "KafkaError") -> None:
    """Connection errors are reported by the call that fails because of them."""
