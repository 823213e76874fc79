"""The DMQP door: a small binary protocol of push, pop and peek on up to 256 topics (docs/dmqp.md).

The door is a client of the log: a topic id is a topic, its shards are partitions, PUSH is an idempotent produce with
acks=all, and POP takes a message through a share group and accepts it before the client gets it.
"""

from tailrace.doors.dmqp.door import DmqpDoor

__all__ = ["DmqpDoor"]
