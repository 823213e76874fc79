"""APIs about records: produce, fetch, look up offsets, delete."""
