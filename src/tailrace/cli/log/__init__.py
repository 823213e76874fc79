"""`tailrace log …`: inspect a data directory without a broker."""
