"""Topics into a PostgreSQL table, each record once.

A row is known by its topic, partition and offset, which is the table's primary key. A task copies its rows into a
temporary table and moves them over in one transaction, passing over those that are there; so a batch that Spark
repeats changes nothing. How far each partition has come is written in the same transaction, for people and tools to
see.
"""
