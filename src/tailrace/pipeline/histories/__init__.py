"""The history of topics, in Parquet files with a Delta log: what was archived, where it is, and proof of it.

    DIR/_delta_log/00000000000000000007.json    the eighth commit: the files added, and our manifest of them
    DIR/_tailrace/                              locks, last commit number, planned ranges, quarantine
    DIR/topic=orders/date=2026-11-16/00003-00000000000000001200-00000000000000001900.parquet
                                                partition 3, records of that day in offsets 1200 to 1899

A file is named after the offset range of its task, so a task that runs twice uses the same file name. Committed files
are never overwritten; a file that no commit names is not part of the history. Every offset of an archived range is
either in one file, or in the manifest with the reason why there is no record at that offset.
"""
