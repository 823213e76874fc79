"""A log with records of a later release: the broker reports it and stops.

A state machine that skipped a record would diverge from the other replicas, and a broker that stopped following the
metadata log would serve from an outdated image. So the broker does neither.
"""

from tailrace import __version__
from tailrace.cluster.features import Features, level_range, why_refused
from tailrace.wire.stored import UnknownRecord


class LaterRelease(Exception):
    """A log or the cluster needs a later release; the message tells the operator which, and what to do."""


def unknown_record(log: str, offset: int, error: UnknownRecord) -> LaterRelease:
    return LaterRelease(
        f"{log} holds a record that tailrace {__version__} does not know, at offset {offset}: {error}. It was written "
        "by a later release: start this broker with that release; its data directory was not changed"
    )


def check_level(supported: Features, name: str, level: int) -> None:
    """`LaterRelease` if a feature was raised to a level that this broker does not support."""
    why = why_refused(f"this broker (tailrace {__version__})", name, level_range(supported, name), level)
    if why:
        raise LaterRelease(why)
