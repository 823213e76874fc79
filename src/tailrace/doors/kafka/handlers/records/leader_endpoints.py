"""The endpoints of the leaders that a response names (KIP-951): a client whose request went to the wrong broker finds
the leader without a Metadata request.
"""

from collections.abc import Iterable

from tailrace.doors.kafka.call import Call
from tailrace.model.ids import BrokerId
from tailrace.wire.hot import Endpoint


def endpoints_of(call: Call, leaders: Iterable[int]) -> list[Endpoint]:
    """The endpoints of brokers, without duplicates; -1 (no leader) is skipped."""
    find = call.services.admin.find_broker
    named = dict.fromkeys(BrokerId(one) for one in leaders if one >= 0)
    return [
        Endpoint(known.id, known.host, known.kafka_port, known.rack)
        for one in named
        if (known := find(one)) is not None
    ]
