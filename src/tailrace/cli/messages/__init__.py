"""`tailrace produce` and `tailrace consume`."""
