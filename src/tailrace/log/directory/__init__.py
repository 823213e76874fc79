"""The data directory's own files: who owns it, checkpoints, and tools to look into it."""
