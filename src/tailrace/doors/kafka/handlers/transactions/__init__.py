"""APIs about producer ids and transactions."""
