"""Every fault in Kafka's words; peers answer with the same ones, so the list itself is `wire.faults`."""

from tailrace.wire.faults import error_of

__all__ = ["error_of"]
