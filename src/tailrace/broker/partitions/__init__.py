"""One hosted partition: its Raft member and its log, appends and reads, and those who wait for an offset."""
