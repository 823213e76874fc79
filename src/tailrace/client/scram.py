"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither sends it.

The client sends a nonce; the server replies with its own nonce, a salt and an iteration count. Password, salt and count
give a key that only client and server know. Each side signs the whole exchange with a key derived from it, and the
other side checks the signature.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator
from typing import Final

from tailrace.client.faults import SecurityRefused

ITERATIONS_MIN: Final = 4096  # with fewer, the password would be cheap to guess
ITERATIONS_MAX: Final = 10_000_000  # no real broker asks for more, and more would take too long
NO_BINDING: Final = "n,,"  # no channel binding: Kafka does not support it
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

SaslExchange = Generator[bytes, bytes, None]  # yields messages to send, receives the broker's replies


def scram(mechanism: str, username: str, password: str, nonce: str) -> SaslExchange:
    """The client's side of SCRAM. `SecurityRefused` when a message from the server is not valid."""
    digest = HASHES[mechanism]
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    said = _text((yield (NO_BINDING + first).encode()))
    given = _fields(said)
    try:
        salt, count = base64.b64decode(given["s"], validate=True), int(given["i"])
    except (KeyError, ValueError, binascii.Error):
        raise _invalid("the first answer has no salt or no count") from None
    if not given.get("r", "").startswith(nonce) or given["r"] == nonce:
        raise _invalid("its nonce does not continue the client's")
    if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
        raise _invalid(f"it asks for {count} iterations; allowed are {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, count)
    client_key = hmac.digest(salted, b"Client Key", digest)
    last = f"c={base64.b64encode(NO_BINDING.encode()).decode()},r={given['r']}"
    everything = f"{first},{said},{last}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), everything, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    answer = _fields(_text((yield f"{last},p={base64.b64encode(proof).decode()}".encode())))
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), everything, digest)
    if not hmac.compare_digest(answer.get("v", ""), base64.b64encode(expected).decode()):
        why = f": {answer['e']}" if "e" in answer else ""
        raise _invalid(f"its signature does not prove that it knows the password{why}")


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace")


def _fields(said: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in said.split(",") if "=" in part)


def _invalid(why: str) -> SecurityRefused:
    return SecurityRefused(f"the broker's SCRAM messages are not valid: {why}")
