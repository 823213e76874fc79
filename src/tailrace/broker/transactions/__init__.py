"""The transaction coordinator of this broker, and verification and markers on the partitions that it leads."""
