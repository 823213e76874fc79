"""SaslHandshake: which mechanism a client is going to prove itself by."""

from tailrace.wire.schema import Int16, message, wire


@message(api=17, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    """After version 0 tokens go without Kafka's frames; after version 1 in SaslAuthenticate."""

    mechanism: str


@message(api=17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    """Whether it may, and which mechanisms there are."""

    error_code: Int16 = 0
    mechanisms: tuple[str, ...] = wire(default=())
