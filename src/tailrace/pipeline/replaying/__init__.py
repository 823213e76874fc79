"""`replay`: write a history back into a topic.

A replay by offset, time or key runs one task per partition, in offset order, and the bytes stay in the Python workers
(`partition`). A replay with a SQL condition is read by Spark's engine and written by the sink (`job`).
"""
