"""Raft in the pull form of Kafka's metadata quorum (KIP-595), as a pure state machine: events in, effects out.

There is one `Replica` per partition and broker. It keeps epochs, votes and offsets; it has no log, socket, clock or
random source of its own. The shell around it (`broker.partitions`) reports events to it and carries out the effects
that it returns.

| file | content |
|---|---|
| `roles` | the roles and the table of transitions; the diagram in docs/raft.md is generated from it |
| `voters` | a voter is a broker and its disk; voter sets by the offset of the entry that set them (KIP-853) |
| `messages` | the messages between replicas; a message is an event for its receiver |
| `events` | all other events, reported by the shell |
| `effects` | what the shell must do, and in which order |
| `timing` | timeouts and backoff |
| `state` | the state of a replica; epoch and vote are on disk before any message reveals them |
| `electing` | rules: pre-votes, elections, granting and counting votes (KIP-996) |
| `following` | rules: fetching, truncating, giving up a leader |
| `leading` | rules: serving fetches, committing, check-quorum, handing over leadership |
| `votes` | which votes are granted (Raft §5.4.1), and the count of one election |
| `divergence` | where a follower's log diverges from the leader's (KIP-101) |
| `leader_view` | what a follower knows about its leader |
| `tracking` | what a leader knows about each replica that fetches from it |
| `voter_changes` | when a voter may be added or removed (Raft dissertation §4.1) |
| `replica` | the machine: `step` takes one event and returns effects; queries for the shell |
"""
