"""`tailrace pipeline …`: Spark jobs from the command line."""
