"""The history of topics, in Parquet, under a Delta log: what was archived, where it is, and the proof of it.

    DIR/_delta_log/00000000000000000007.json    the eighth commit: which files came, and our manifest of them
    DIR/_tailrace/                              locks, the last commit's number, what is under way or set aside
    DIR/topic=orders/date=2026-11-16/00003-00000000000000001200-00000000000000001900.parquet
                                                partition 3, records of that day among offsets 1200 to 1899

A file's name is made of the offsets that a task was given, so a task that runs twice comes to the same name, and what
is part of the history is never written over; what no commit names is no part of it. Every offset of an archived range
is either in one file or in the manifest with the reason why it holds no record.
"""
