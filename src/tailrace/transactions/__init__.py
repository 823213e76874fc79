"""Transactions, pure: events in, records, markers and answers out; `transactions` is the machine."""
