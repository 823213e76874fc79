"""Compaction of a log: per key the last committed record stays, and offsets stay as they were."""
