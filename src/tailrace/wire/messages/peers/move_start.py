"""MoveStart: a leader asks that records below an offset be deleted, for every leader to come (DeleteRecords)."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, Int64, message


@message(api=1015, versions="0-0", flexible="0+")
class MoveStart:
    topic_id: Id
    partition: Int32
    start: Int64


@message(api=1015, versions="0-0", flexible="0+")
class MoveStartAnswer(PeerAnswer):
    """Done, or why not."""
