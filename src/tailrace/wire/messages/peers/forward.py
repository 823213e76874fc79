"""Forward: a client's request in its own bytes, for the controller to serve as if the client had asked it."""

from tailrace.model.caller import ANONYMOUS
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int16, message, wire


@message(api=1016, versions="0-0", flexible="0+")
class Forward:
    """The body of a request of Kafka's API `api_key`, without its header."""

    api_key: Int16
    api_version: Int16
    body: bytes
    principal: str = wire(tag=0, default=ANONYMOUS)  # on whose behalf


@message(api=1016, versions="0-0", flexible="0+")
class ForwardAnswer(PeerAnswer):
    """The body of the response, in the same version. Faults of the request itself are in there."""

    body: bytes = b""
