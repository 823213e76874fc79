"""The connections between brokers (docs/adr/0008): a listener of their own, and three lanes (connections) per pair.

The control lane carries one-way Raft messages and calls, which are requests with an answer; the other two carry Fetch.
`Peers` is the entry point; the broker implements `PeerEvents` to receive what arrives. All frames use Kafka's framing.
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
