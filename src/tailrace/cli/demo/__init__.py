"""`tailrace demo`."""
