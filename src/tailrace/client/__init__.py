"""A Kafka client of our own: for doors, for brokers that join, for Spark's workers, for tests and the simulator.

The protocol logic is written once and does no I/O: `exchange` (requests and responses of one connection), `cluster_map`
(what metadata says), `sasl` and `scram`, `batching` (what a producer has to send), `fetch_session` and
`visible_batches` (what a consumer fetches, and which batches it may return), `groups/` (members of the protocols),
`shares/` (share sessions, deliveries and their acknowledgement).

`cluster` routes requests to leaders and coordinators and retries them; `offsets`, `transactions`, `admin` and
`group_admin` are the requests. They are coroutines over a `Driver`, which connects, sleeps and tells the time. There
are two drivers: `asyncio_driver` runs on the ports, so also in simulation; `blocking_driver` has blocking sockets, and
its coroutines never wait. On an event loop there are also `Producer`, `Consumer`, `GroupConsumer` and `ShareConsumer`;
`Queue` puts a topic and a share group together, and `BlockingQueue` is the same without an event loop.

The client works with any broker that speaks Kafka's protocol, and knows nothing of the insides of ours.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tailrace.client.blocking_queue import BlockingQueue
    from tailrace.client.queue import Queue, QueueEmpty, QueueOptions, Reject

# Imported at first use: a broker imports this package, and has no queue.
QUEUES: Final = {
    "BlockingQueue": "tailrace.client.blocking_queue",
    "Queue": "tailrace.client.queue",
    "QueueEmpty": "tailrace.client.queue",
    "QueueOptions": "tailrace.client.queue",
    "Reject": "tailrace.client.queue",
}
__all__ = ["BlockingQueue", "Queue", "QueueEmpty", "QueueOptions", "Reject"]


def __getattr__(name: str) -> Any:
    if name not in QUEUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(QUEUES[name]), name)
