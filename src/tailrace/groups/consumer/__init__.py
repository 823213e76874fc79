"""Consumer groups of KIP-848: the coordinator computes the assignment and moves each member to it by heartbeats."""
