"""Transactions, without I/O: requests in, records and markers out; `transactions.Transactions` is the state machine."""
