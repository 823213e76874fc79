"""What many responses begin with."""

from tailrace.wire.schema import Int16, Int32, struct, wire


@struct
class ExplainedResponse:
    """An error of the whole request, with a message, or 0."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
