"""`tailrace doors`: which doors are open on which broker."""
