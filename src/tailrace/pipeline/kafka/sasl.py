"""SASL over Kafka's protocol: choose the mechanism, then exchange its messages (KIP-43, KIP-152)."""

import secrets
from collections.abc import Callable
from typing import Any, Final

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.scram import SaslExchange, scram
from tailrace.pipeline.kafka.security import Sasl
from tailrace.wire.errors import Error
from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest

NONCE_BYTES: Final = 24


def authenticate(call: Callable[[object], Any], sasl: Sasl, address: str) -> None:
    """Authenticate a new connection before any other request. `PipelineFailed` when the broker rejects it."""
    shaken = call(SaslHandshakeRequest(mechanism=sasl.mechanism))
    if shaken.error_code:
        has = ", ".join(shaken.mechanisms) or "none"
        raise PipelineFailed(f"kafka.sasl.mechanism = {sasl.mechanism}: {address} has {has}")
    exchange = _exchange(sasl)
    turn = next(exchange)
    while True:
        answer = call(SaslAuthenticateRequest(auth_bytes=turn))
        if answer.error_code:
            why = answer.error_message or Error(answer.error_code).name
            raise PipelineFailed(f"{address} does not take the name and password of kafka.sasl.jaas.config: {why}")
        try:
            turn = exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            return


def _exchange(sasl: Sasl) -> SaslExchange:
    return plain(sasl) if sasl.mechanism == "PLAIN" else scram(sasl, secrets.token_urlsafe(NONCE_BYTES))


def plain(sasl: Sasl) -> SaslExchange:
    """RFC 4616: user name and password in one message, in clear text, so only to be used within TLS."""
    yield f"\0{sasl.username}\0{sasl.password}".encode()
