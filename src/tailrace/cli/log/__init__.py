"""`tailrace log …`: look into a data directory without a broker."""
