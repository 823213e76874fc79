"""`tailrace group …`."""
