"""SASL over Kafka's protocol: choose the mechanism, then exchange its messages (KIP-43, KIP-152)."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, Final, Literal, get_args

from tailrace.client.faults import SecurityRefused, Unsupported, error_of
from tailrace.client.scram import SaslExchange, scram
from tailrace.model.frozen import frozen
from tailrace.model.ids import show_id
from tailrace.ports import Random
from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)


@frozen
class Sasl:
    mechanism: Mechanism
    username: str
    password: str = field(repr=False)


async def log_in(call: Callable[[object], Awaitable[Any]], sasl: Sasl, address: str, random: Random) -> None:
    """Authenticate a new connection before any other request. `SecurityRefused` when the broker rejects it."""
    try:
        shaken = await call(SaslHandshakeRequest(mechanism=sasl.mechanism))
    except Unsupported:
        raise _not_offered(address) from None
    if shaken.error_code and not shaken.mechanisms:
        raise _not_offered(address)
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms)
        raise SecurityRefused(f"{address} does not offer the SASL mechanism {sasl.mechanism}, only {offered}")
    exchange = _exchange(sasl, show_id(random.new_id()) + show_id(random.new_id()))
    message = next(exchange)
    while True:
        answer = await call(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code:
            why = answer.error_message or error_of(answer.error_code).name
            raise SecurityRefused(f"{address} does not accept the user name and password: {why}")
        try:
            message = exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            return


def _not_offered(address: str) -> SecurityRefused:
    return SecurityRefused(f"{address} does not offer SASL: clients do not log in at this port")


def _exchange(sasl: Sasl, nonce: str) -> SaslExchange:
    if sasl.mechanism == "PLAIN":
        return plain(sasl.username, sasl.password)
    return scram(sasl.mechanism, sasl.username, sasl.password, nonce)


def plain(username: str, password: str) -> SaslExchange:
    """RFC 4616: user name and password in one message, in clear text, so only to be used within TLS."""
    yield f"\0{username}\0{password}".encode()
