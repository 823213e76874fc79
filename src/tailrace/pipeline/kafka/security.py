"""Errors of secured connections, with the options to look at."""

import ssl
from typing import Final

from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed

# For example when a broker is stopping.
CONNECTION_CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

SECURITY_HINT: Final = (
    "If this repeats: does this port want TLS, or none, or a certificate, or a login? Set kafka.security.protocol and "
    "the kafka.ssl.* or kafka.sasl.* options accordingly"
)


def tls_failure(address: str, error: ssl.SSLError) -> PipelineFailed:
    """The error for a TLS failure: not retriable, unless the broker just closed the connection."""
    if isinstance(error, CONNECTION_CLOSED):
        return NoBrokerAvailable(f"the connection to {address} broke: it was closed during TLS. {SECURITY_HINT}")
    why = getattr(error, "verify_message", "") or error.reason or "the other side does not use TLS"
    return PipelineFailed(
        f"no TLS with {address}: {why}. Is it a port for TLS? Is its certificate for that name, and signed by one in "
        "kafka.ssl.truststore.location? Does it require a client certificate (kafka.ssl.keystore.location)?"
    )
