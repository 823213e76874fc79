"""Raft in the pull form of Kafka's metadata quorum (KIP-595), pure: events in, effects out.

One `Replica` per partition and broker. It knows epochs, votes and offsets; it has no log, no socket and no clock.
The shell around it (`broker.Partition`) feeds it what happened and carries out the effects it returns.
"""
