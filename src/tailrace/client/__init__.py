"""A Kafka client of our own: for doors, for brokers that join, for Spark's workers, for tests and the simulator.

The protocol logic is written once and does no I/O: `exchange` (requests and responses of one connection), `cluster_map`
(what metadata says), `sasl`, `batching` and `sequences` (what a producer has to send), `positions` (what a consumer
fetches next), `groups` (membership of consumer groups). `cluster` routes requests to leaders and coordinators and
retries them. It is written as coroutines over a `Driver`, which connects, sleeps and tells the time; there are two:
`asyncio_driver` runs on the ports, so also in simulation; `blocking_driver` has blocking sockets, and its coroutines
never wait.

The client works with any broker that speaks Kafka's protocol, and knows nothing of the insides of ours.
"""
