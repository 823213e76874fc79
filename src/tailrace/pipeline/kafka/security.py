"""Errors of secured connections, with the options to look at."""

import ssl
from typing import Final

from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed

# For example when a broker is stopping.
CONNECTION_CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

SECURITY_HINT: Final = (
    "If that stays so: does this port want TLS, or none, or a certificate, or a login? kafka.security.protocol and "
    "what belongs to it say how to come"
)


def tls_failure(address: str, error: ssl.SSLError) -> PipelineFailed:
    """The error for a TLS failure: not retriable, unless the broker just closed the connection."""
    if isinstance(error, CONNECTION_CLOSED):
        return NoBrokerAvailable(
            f"the connection to {address} broke: it was closed in the midst of TLS. {SECURITY_HINT}"
        )
    why = getattr(error, "verify_message", "") or error.reason or "it speaks another language"
    return PipelineFailed(
        f"no TLS with {address}: {why}. Is it a port for TLS? Is its certificate for that name, and signed by one in "
        "kafka.ssl.truststore.location? Does it want one of ours (kafka.ssl.keystore.location)?"
    )
