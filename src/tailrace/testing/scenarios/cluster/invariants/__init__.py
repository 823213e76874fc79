"""The invariants of a cluster, by name, and the observers that check them while it runs."""
