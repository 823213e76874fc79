"""Benchmarks of the broker: against a minimal server (`python -m benchmarks`) and against Apache Kafka (`.peers`)."""
