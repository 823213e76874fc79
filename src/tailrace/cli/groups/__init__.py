"""`tailrace group …`: commands for consumer groups."""
