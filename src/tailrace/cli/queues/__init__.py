"""`tailrace queue …`: commands for queues: topics that are read by share groups."""
