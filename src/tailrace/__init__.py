"""Tailrace: one log, many doors. A distributed message queue that any Kafka client can use."""

__version__ = "0.2.0"
