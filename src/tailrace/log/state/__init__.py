"""State that is derived from a log's batches: producers, open and aborted transactions, epochs, voters, gaps."""
