"""`replay`: a history back into a topic.

By offset, time or key the bytes stay in the Python workers (`partition`), one task a partition, in the order of
offsets; with a SQL condition Spark's engine reads the history, and the sink writes it (`job`).
"""
