"""Consumer groups and their offsets, pure: events in, records and answers out; `groups` is the machine."""
