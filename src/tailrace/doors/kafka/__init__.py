"""The Kafka door: serves unmodified Kafka clients.

`registry` lists the supported APIs and versions, `handlers/` has one file per API, `connection` reads requests and
sends responses in the order of the requests.
"""

from tailrace.doors.kafka.door import KafkaDoor, open_door

__all__ = ["KafkaDoor", "open_door"]
