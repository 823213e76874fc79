"""Groups of the classic protocol: members join, and the leader of the generation, a client, computes the assignment."""
