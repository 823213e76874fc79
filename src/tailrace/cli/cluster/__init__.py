"""`tailrace cluster …`: run several brokers on this machine, and show any cluster's state."""
