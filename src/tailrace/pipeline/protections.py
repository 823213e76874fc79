"""What keeps each guarantee, by name, so that a test can leave one out and see the guarantee break for that reason.

For tests alone. All of them stand unless the variable TAILRACE_WITHOUT names some, with commas between; nobody who
cares for records sets it. `tests/pipeline/test_protections.py` has for each the scenario that it is there for.
"""

import os
from typing import Final, Literal

VARIABLE: Final = "TAILRACE_WITHOUT"

Protection = Literal[
    "source: a start at latest is kept", "source: batches fit their checksums",
    "sink: rows are written in transactions", "sink: each attempt has a transaction of its own",
    "sink: only what is open is decided", "sink: it is decided before the first commit",
    "sink: what is decided is not written again", "sink: what is decided is completed",
    "sink: attempts that lost are aborted",
    "archive: a range has one name", "archive: every offset is accounted for",
    "archive: it goes on where the history ends", "archive: a batch begins where the history ends",
    "archive: the number of a commit is taken once",
    "compact: what is read is as it was written", "compact: the history says the same as before",
    "compact: what was replaced stays for a while",
    "replay: records and progress move together",
    "postgres: rows are known by their offset",
]  # fmt: skip


def stands(protection: Protection) -> bool:
    """Whether this protection is in place."""
    return protection not in os.environ.get(VARIABLE, "").split(",")
