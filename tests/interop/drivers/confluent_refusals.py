"""confluent-kafka's errors, as refusals."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tests.interop.client import DEADLINE_S, Refused


@contextmanager
def surfaced() -> Iterator[None]:
    try:
        yield
    except KafkaException as refusal:
        error: KafkaError = refusal.args[0]
        raise Refused(error.code(), error.str()) from refusal


def only(futures: Mapping[Any, "Future[Any]"]) -> Any:
    """The result of a call about one thing."""
    (future,) = futures.values()
    with surfaced():
        return future.result(DEADLINE_S)
