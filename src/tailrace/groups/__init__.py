"""Consumer groups and their committed offsets, without I/O: requests in, records and answers out.

`groups.Groups` is the state machine of one coordinator partition. `classic/` has groups of the classic protocol,
`consumer/` those of KIP-848.
"""
