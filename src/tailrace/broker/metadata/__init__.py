"""The committed cluster metadata on this broker: following it, and keeping the hosted partitions in line with it."""
