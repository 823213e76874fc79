"""The sink of `format("tailrace")`: writes rows to topics, at least once or exactly once.

Exactly once, in short: each task writes in its own transaction and leaves the transaction open. When all tasks have
written, the driver records on the broker that the batch is decided, commits the transactions one by one, and records
that the batch is done. After a crash, the next driver commits a batch that is decided but not done, without writing
any of its rows again.
"""
