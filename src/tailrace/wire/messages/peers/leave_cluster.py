"""LeaveCluster: a broker stops cleanly and asks to be fenced, so that nobody waits for its silence."""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int16, Int32, message, wire


@message(api=1012, versions="0-0", flexible="0+")
class LeaveCluster:
    """Who leaves. An older incarnation than the registered one changes nothing."""

    broker_id: Int32
    incarnation_id: Id


@message(api=1012, versions="0-0", flexible="0+")
class LeaveClusterAnswer:
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
