"""How fast the broker is, beside the least a program could do (`python -m benchmarks`) and Apache Kafka (`.peers`)."""
