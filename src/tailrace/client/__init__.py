"""A Kafka client of our own: for doors, for brokers that join, for Spark's workers, for tests and the simulator.

The protocol logic is written once and does no I/O: `exchange` (requests and responses of one connection), `cluster_map`
(what metadata says), `sasl` and `scram`, `batching` (what a producer has to send), `fetch_session` and
`visible_batches` (what a consumer fetches, and which batches it may return), `groups/` (members of both protocols).

`cluster` routes requests to leaders and coordinators and retries them; `offsets`, `transactions`, `admin` and
`group_admin` are the requests. They are coroutines over a `Driver`, which connects, sleeps and tells the time. There
are two drivers: `asyncio_driver` runs on the ports, so also in simulation; `blocking_driver` has blocking sockets, and
its coroutines never wait. On an event loop there are also `Producer`, `Consumer` and `GroupConsumer`.

The client works with any broker that speaks Kafka's protocol, and knows nothing of the insides of ours.
"""
