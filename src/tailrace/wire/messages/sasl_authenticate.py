"""SaslAuthenticate: one turn of the conversation by which a client proves who it is."""

from tailrace.wire.schema import Int16, Int64, message, wire


@message(api=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """What the mechanism says next."""

    auth_bytes: bytes


@message(api=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """What it says in return; and how long the connection is good for, 0: for ever."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    auth_bytes: bytes = b""
    session_lifetime_ms: Int64 = wire(since=1, default=0, ignorable=True)
