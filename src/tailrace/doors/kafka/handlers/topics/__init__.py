"""Topics and partitions: create, delete, grow and describe them."""
