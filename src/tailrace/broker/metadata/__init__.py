"""The committed cluster metadata on this broker: reading it, and opening and closing partitions as it says."""
