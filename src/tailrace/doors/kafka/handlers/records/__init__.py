"""Records: produce, fetch, look up offsets, delete."""
