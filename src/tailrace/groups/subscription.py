"""What consumers say of themselves when they join: which topics they read. For brokers it is bytes of clients, which
are looked into only to know which offsets are still in use; what cannot be read says nothing."""

import struct
from collections.abc import Iterable
from typing import Final

from tailrace.wire.compile import decode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import record

CONSUMER_PROTOCOL: Final = "consumer"
VERSION_LAYOUT: Final = struct.Struct(">h")


@record(type=0, versions="0-0", flexible="none")
class Subscription:
    """The beginning, which is the same in all versions."""

    topics: tuple[str, ...]


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that members read; None: somebody does not say."""
    found: dict[str, None] = {}
    for data in metadata:
        if len(data) < VERSION_LAYOUT.size:
            return None
        try:
            subscription, _ = decode(Subscription, 0, data, VERSION_LAYOUT.size)
        except WireError:
            return None
        found |= dict.fromkeys(subscription.topics)
    return frozenset(found)
