"""One API, one file: what it means, then what it does."""
