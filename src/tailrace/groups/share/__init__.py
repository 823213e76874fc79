"""Share groups of KIP-932: their members share partitions, and the coordinator computes who reads which."""
