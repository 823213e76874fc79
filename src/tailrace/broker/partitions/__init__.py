"""A partition hosted on this broker: its Raft member, its log, appends and reads, and waiting for an offset."""
