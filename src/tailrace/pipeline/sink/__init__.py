"""`format("tailrace")` to write: rows into topics, at least once or exactly once.

Exactly once, in short: each task writes in a transaction of its own and leaves it open. When all have, the driver
writes down, on the broker, that this batch is decided; then it commits them one by one; then it writes down that it
is done. The driver that finds a batch decided and not done, after a crash, ends it, and writes nothing of it again.
"""
