"""MoveStart: a leader asks that records below an offset be deleted, for every leader to come (DeleteRecords)."""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=1015, versions="0-0", flexible="0+")
class MoveStart:
    topic_id: Id
    partition: Int32
    start: Int64


@message(api=1015, versions="0-0", flexible="0+")
class MoveStartAnswer:
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
