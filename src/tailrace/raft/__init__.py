"""Raft in the pull form of Kafka's metadata quorum (KIP-595), pure: events in, effects out.

One `Replica` per partition and broker. It knows epochs, votes and offsets; it has no log, no socket, no clock and no
chance. The shell around it (`broker.Partition`) feeds it what happened and carries out the effects it returns.

Where to read what:

| file | what |
|---|---|
| `roles` | the states, and the table of transitions; the diagram in docs/raft.md is made from it |
| `voters` | who votes: a broker and its disk; voter sets by the offset that brought them (KIP-853) |
| `messages` | what replicas say to each other; what one sends, the other takes as an event |
| `events` | what else can happen, told by the shell |
| `effects` | what the shell must do, and in which order |
| `timing` | how long everybody waits |
| `state` | what a replica remembers; epoch and vote are on disk before anyone hears of them |
| `electing` | rules: standing for election, giving votes, counting them (KIP-996) |
| `following` | rules: fetching, truncating, giving a leader up |
| `leading` | rules: answering fetches, commit, check-quorum, handing over |
| `standing`, `ballot` | which votes are given (Raft §5.4.1); one election's votes |
| `divergence`, `leader_view` | where two logs part ways (KIP-101); what a follower knows of its leader |
| `tracking`, `voter_changes` | what a leader knows of who fetches; when voters may change (Raft dissertation §4.1) |
| `replica` | the machine: one event in, effects out; what the shell may ask |
"""
