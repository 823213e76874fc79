"""Spark's JVM: which Java runs it, how it is started, and how to make it start fast."""
