"""SaslHandshake: the SASL mechanism that the client will use."""

from tailrace.wire.schema import Int16, message, wire


@message(api=17, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """After version 0 the SASL tokens follow without Kafka headers; after version 1 in SaslAuthenticate."""

    mechanism: str


@message(api=17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """Whether the broker supports the mechanism, and which mechanisms it supports."""

    error_code: Int16 = 0
    mechanisms: tuple[str, ...] = wire(default=())
