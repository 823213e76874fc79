"""Membership of consumer groups, without I/O: what a member sends, and what follows from each response.

`member` says what the two protocols have in common: `classic_member` (JoinGroup, SyncGroup, Heartbeat; the elected
leader computes the assignment with `assignors`) and `consumer_member` (KIP-848: ConsumerGroupHeartbeat; the coordinator
computes it). `subscriptions` has the bytes that classic members embed. `progress` counts what was processed and what
was committed. Time is an argument everywhere; `client.group_membership` runs these objects on an event loop.
"""
