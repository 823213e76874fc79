"""Which brokers may talk to each other: those that support the level of metadata.version in force.

Both ends of a connection tell the levels that they support in the hello. Each refuses the other, by name and with what
to do about it, when the level that it knows to be in force is not among them; a raise closes connections that it makes
impossible. A broker of 0.1.0 tells no levels: it supports level 1.
"""

from collections.abc import Callable
from typing import Final

from tailrace.broker.peers.unreachable import Refused
from tailrace.cluster.features import LEVELS, METADATA_VERSION, LevelRange, why_refused
from tailrace.model.frozen import frozen
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer

SILENT_RELEASE: Final = LEVELS[0].release  # does not tell its release in every hello


@frozen
class OwnLevels:
    """The levels that this broker supports, and the one in force as far as it knows."""

    supported: LevelRange
    in_force: Callable[[], int]


def why_incompatible(told: PeerHello | PeerHelloAnswer, level: int) -> str:
    """Why the broker that told this cannot talk to brokers at a level, and what to do; "" if it can."""
    who = f"broker {told.broker_id}" if told.broker_id >= 0 else "the broker that asks to join"
    supported = LevelRange(told.first_level, told.last_level)
    return why_refused(f"{who} (tailrace {told.release or SILENT_RELEASE})", METADATA_VERSION, supported, level)


def check_level(told: PeerHello | PeerHelloAnswer, level: int) -> None:
    """Refused if the broker that told this does not support the level in force."""
    why = why_incompatible(told, level)
    if why:
        raise Refused(Error.UNSUPPORTED_VERSION, why)
