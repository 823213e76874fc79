"""Writes topics to a PostgreSQL table, each record once.

A row is identified by its topic, partition and offset, which are the table's primary key. In one transaction, a task
copies its rows into a temporary table and inserts them into the target table, skipping rows that are already there. So
a batch that Spark repeats changes nothing. The same transaction records the next offset of each partition in a
progress table, for people and tools to read.

`queue/` is another sink, without Spark: the tables of the HTTP queue.
"""
