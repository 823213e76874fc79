"""Queues (share groups, KIP-932), without I/O: what is stored of a share partition, and the state machines around it."""
