"""A cluster of real nodes under every fault there is, and what must hold all along.

| file | what |
|---|---|
| `invariants` | the names of what must hold, and how a run says that it did not |
| `sighting`, `entries` | one replica as it is now; the batches that lie on its disk |
| `leadership` | leaders, epochs and high watermarks |
| `committed`, `claims` | the one history of each partition, and what clients were told of it |
| `journals` | votes, as the disks have them |
| `watch` | looks at every node every few virtual milliseconds, and before it dies |
| `plan` | what a seed decides before anything happens |
| `server` | one broker: its machine and its lives |
| `budget`, `faults`, `outages`, `damage` | what goes wrong, and how much of it may at a time |
| `router`, `writer`, `reader`, `looker`, `changer` | the clients |
| `coordinated`, `member`, `beating_member`, `group_offsets` | members of consumer groups, by both protocols |
| `ownership` | what they were told |
| `transactor`, `transacting`, `late_marker`, `stable_reader`, `outcomes` | transactions, and what came of them |
| `convergence` | what must be true soon after everything is healed |
| `met`, `story` | what a run came across; the run itself |
"""
