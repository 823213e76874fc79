"""What every answer between brokers begins with, the one to PeerHello aside."""

from tailrace.wire.schema import Int16, Int32, struct, wire


@struct
class PeerAnswer:
    """An error, or 0; with NotController the controller as the answering broker knows it."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
