"""Record batches, Kafka's format v2: read their header, build, open, compress."""
