"""kafka-python's errors, as refusals."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import KafkaError

from tests.interop.client import Refused


@contextmanager
def surfaced() -> Iterator[None]:
    try:
        yield
    except KafkaError as refusal:
        raise Refused(getattr(refusal, "errno", -1), str(refusal)) from refusal
