"""SaslAuthenticate: one exchange of SASL tokens."""

from tailrace.wire.schema import Int16, Int64, message, wire


@message(api=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """The client's token."""

    auth_bytes: bytes


@message(api=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The server's token, and the lifetime of the session in milliseconds, 0 for unlimited."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    auth_bytes: bytes = b""
    session_lifetime_ms: Int64 = wire(since=1, default=0, ignorable=True)
