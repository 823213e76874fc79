"""`tailrace topic …`: commands for topics."""
