"""Share groups (KIP-932), without I/O: queues on a log, which deliver each record to one member at a time."""
