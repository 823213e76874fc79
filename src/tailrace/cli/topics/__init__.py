"""`tailrace topic …`."""
