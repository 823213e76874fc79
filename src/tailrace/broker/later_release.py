"""What a broker does with a log that a later release has written: it says so, and stops.

A state machine that skipped a record would no longer be the one that its log describes, and a broker that no longer
follows the metadata would serve from an old image. So neither goes on.
"""

from tailrace import __version__
from tailrace.cluster.features import Features, level_range, why_refused
from tailrace.wire.stored import UnknownRecord


class LaterRelease(Exception):
    """What was met in which log, and what to do: a sentence for the person who runs this broker."""


def unknown_record(log: str, offset: int, error: UnknownRecord) -> LaterRelease:
    return LaterRelease(
        f"{log} holds a record that tailrace {__version__} does not know, at offset {offset}: {error}. A later release "
        "has written it: start this broker with that release; its data directory is as it was"
    )


def check_level(supported: Features, name: str, level: int) -> None:
    """`LaterRelease` if a feature was raised to a level that this broker does not support."""
    why = why_refused(f"this broker (tailrace {__version__})", name, level_range(supported, name), level)
    if why:
        raise LaterRelease(why)
