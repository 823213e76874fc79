"""This broker as a transaction coordinator, and what transactions do to the partitions that it leads."""
