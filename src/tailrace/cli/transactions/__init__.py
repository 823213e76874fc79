"""`tailrace transaction …`: commands for transactions."""
