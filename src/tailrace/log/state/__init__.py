"""What a log knows beside its bytes: producers, open and aborted transactions, epochs, voters, gaps."""
