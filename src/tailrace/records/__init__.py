"""Record batches in Kafka's format v2: header, building, reading, compression, control batches."""
