"""The Kafka door: any Kafka client, unchanged.

`registry` is the support statement, `handlers/` has one file per API, `connection` takes frames and keeps answers in
request order.
"""

from tailrace.doors.kafka.door import KafkaDoor, open_door

__all__ = ["KafkaDoor", "open_door"]
