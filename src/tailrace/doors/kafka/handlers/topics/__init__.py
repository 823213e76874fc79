"""APIs about topics: create, delete and describe them, add partitions."""
