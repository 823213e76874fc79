"""The faults that are injected into a simulated cluster, and how many of them at a time."""
