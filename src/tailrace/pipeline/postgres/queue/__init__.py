"""Keeps the HTTP queue's records in PostgreSQL tables: topics, brokers, producers, consumers and messages.

No Spark: one process reads what is new and writes it. How far it is stands in the same database, and is changed in the
same transaction as the rows. So a sink that is killed goes on where it was, and two of them at the same tables do no
harm.
"""
