"""How brokers talk to each other (docs/adr/0008): a port of their own, three lanes a pair, one-way messages, calls.

`Peers` is all of it; `PeerEvents` is what the broker does with what comes in. Kafka's framing is used throughout.
"""

from tailrace.broker.peers.accepted import PeerConnection
from tailrace.broker.peers.events import PeerEvents
from tailrace.broker.peers.lane import Lane
from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import OwnLevels
from tailrace.broker.peers.once import call_once
from tailrace.broker.peers.peers import Peers
from tailrace.broker.peers.unreachable import Refused, Unreachable

__all__ = [
    "Lane",
    "LaneKind",
    "OwnLevels",
    "PeerConnection",
    "PeerEvents",
    "Peers",
    "Refused",
    "Unreachable",
    "call_once",
]
