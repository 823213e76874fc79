"""A cluster of real brokers under every fault the simulator has, and the invariants that must hold all the time.

A run has four phases: the brokers start and join, clients work while faults are injected, everything is healed, and
the cluster has to converge. One seed decides all of it. `tailrace simulate --seed N` runs a seed, and
`tailrace simulate --seed N --trace` prints its history.

| module | what |
|---|---|
| `campaign` | runs many seeds and reports the result |
| `scenario` | one run, phase by phase |
| `plan` | what a seed decides in advance: brokers, fsync policy, delays, settings |
| `server` | one broker: its machine, its starts and its crashes |
| `coverage` | counts what a run exercised |
| `faults/` | what is injected: `schedule` picks from `crashes`, `disturbances` and `disk_damage` within the `budget` |
| `invariants/` | what must hold, by name, and how it is observed |
| `clients/` | producers, consumers, members of groups, transactions and admin clients, and what they were told |
"""
