"""The shell around the pure machines: the node, its partitions, the coordinator runtime, waiting requests, timers."""
