"""LeaveCluster: a broker stops cleanly and asks to be fenced, so that nobody waits for its silence."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, message


@message(api=1012, versions="0-0", flexible="0+")
class LeaveCluster:
    """Who leaves. An older incarnation than the registered one changes nothing."""

    broker_id: Int32
    incarnation_id: Id


@message(api=1012, versions="0-0", flexible="0+")
class LeaveClusterAnswer(PeerAnswer):
    """Done, or why not."""
