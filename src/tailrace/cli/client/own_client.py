"""The client of commands that need only admin requests: our own, so they need no extra package.

It speaks Kafka's protocol, so these commands work with any Kafka broker.
"""

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, CLIENT_ID, check_reachable
from tailrace.cli.failure import Failed
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, Refused, Unavailable
from tailrace.model.addresses import parse_addresses

T = TypeVar("T")

LIMITS: Final = Limits(request_s=ANSWER_TIMEOUT_S, retry_s=ANSWER_TIMEOUT_S, unknown_s=0.0)


@contextmanager
def connected(access: Access) -> Iterator[Cluster]:
    """The cluster that one of these brokers belongs to. The errors of the client become `Failed`."""
    check_reachable(access)
    driver = BlockingDriver(CLIENT_ID, timeout_s=ANSWER_TIMEOUT_S, tls=access.tls, sasl=access.security.sasl)
    cluster = Cluster(driver, parse_addresses(access.bootstrap), LIMITS)
    try:
        yield cluster
    except Refused as refused:
        raise Failed(sentence(refused)) from None
    except Unavailable as error:
        raise Failed(f"{error}.\n{access.advice}" if access.config else f"{error}.") from None
    except ClientError as error:
        raise Failed(f"{error}.") from None
    finally:
        cluster.close()


def ask(work: Coroutine[Any, Any, T]) -> T:
    """The result of a call of the client."""
    return run_blocking(work)


def sentence(refused: Refused) -> str:
    """What the broker refused and why, with the name of the error code in brackets."""
    name = refused.error.name
    why = (refused.message or name.replace("_", " ").capitalize()).rstrip(".")
    return f"cannot {refused.what}: {why} [{name}]."
