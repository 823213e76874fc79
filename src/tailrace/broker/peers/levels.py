"""The check that a peer supports the level of metadata.version in force.

Both ends of a connection send the levels they support in the hello. Each refuses the other when the level it knows to
be in force is not among them, and says which release to start instead. Raising the level closes connections to brokers
that do not support the new one. A broker of release 0.1.0 sends no levels: it supports level 1.
"""

from collections.abc import Callable
from typing import Final

from tailrace.broker.peers.unreachable import Refused
from tailrace.cluster.features import LEVELS, METADATA_VERSION, LevelRange, why_refused
from tailrace.model.frozen import frozen
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer

SILENT_RELEASE: Final = LEVELS[0].release  # sends its release in some hellos only


@frozen
class OwnLevels:
    """The levels that this broker supports, and the one in force as far as it knows from the committed metadata."""

    supported: LevelRange
    in_force: Callable[[], int]


def why_incompatible(hello: PeerHello | PeerHelloAnswer, level: int) -> str:
    """Why the sender of a hello cannot work at `level`, and what to do about it; "" if it can."""
    who = f"broker {hello.broker_id}" if hello.broker_id >= 0 else "the broker that asks to join"
    supported = LevelRange(hello.first_level, hello.last_level)
    return why_refused(f"{who} (tailrace {hello.release or SILENT_RELEASE})", METADATA_VERSION, supported, level)


def check_level(hello: PeerHello | PeerHelloAnswer, level: int) -> None:
    """Refused if the sender of a hello does not support the level in force."""
    why = why_incompatible(hello, level)
    if why:
        raise Refused(Error.UNSUPPORTED_VERSION, why)
