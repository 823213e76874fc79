"""Where the leaders are that an answer names (KIP-951): a client that asked the wrong broker needs no Metadata."""

from collections.abc import Iterable

from tailrace.doors.kafka.call import Call
from tailrace.model.ids import BrokerId
from tailrace.wire.hot import Endpoint


def endpoints_of(call: Call, leaders: Iterable[int]) -> list[Endpoint]:
    """Where clients reach these brokers, each once; -1 names nobody."""
    find = call.services.admin.find_broker
    named = dict.fromkeys(BrokerId(one) for one in leaders if one >= 0)
    return [
        Endpoint(known.id, known.host, known.kafka_port, known.rack)
        for one in named
        if (known := find(one)) is not None
    ]
