"""Spark's other half: which Java runs it, how it is started, and how it starts fast."""
