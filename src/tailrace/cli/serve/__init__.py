"""`tailrace serve`: run one broker in this process."""
