"""`tailrace transaction …`."""
