"""librdkafka's settings for each kind of load."""

from typing import Final

BULK_SETTINGS: Final = {
    "batch.size": "1000000",
    "batch.num.messages": "1000000",
    "linger.ms": "5",
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "1000000",
}
SINGLE_SETTINGS: Final = {
    "batch.num.messages": "1",
    "linger.ms": "0",
    "max.in.flight": "100",
    "queue.buffering.max.messages": "1000000",
}
CONSUME_SETTINGS: Final = {
    "queued.min.messages": "1000000",
    "queued.max.messages.kbytes": "500000",
    "fetch.message.max.bytes": "8000000",
    "fetch.wait.max.ms": "100",
}
