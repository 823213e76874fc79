"""How a connection is secured before the first request: TLS, and SASL with a user name and a password.

The settings are plain values that are sent to tasks along with their work. Certificates and keys are included as text,
so their files are needed only on the driver's machine. The `repr` of the settings shows no secrets.
"""

import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final

from tailrace.client.sasl import Sasl
from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")  # Java's names, oldest first
# For example when a broker is stopping.
CONNECTION_CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

SECURITY_HINT: Final = (
    "If that stays so: does this port want TLS, or none, or a certificate, or a login? kafka.security.protocol and "
    "what belongs to it say how to come"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    authorities: str = ""  # trusted CA certificates, in PEM; empty: the system's CA certificates
    client_certificate: str = field(default="", repr=False)  # client certificate, chain and key, in PEM; empty: none
    key_password: str = field(default="", repr=False)
    checks_hostname: bool = True  # whether the broker's certificate must match the host name
    oldest: str = TLS_VERSIONS[0]  # `oldest` and `newest` are the TLS versions allowed
    newest: str = TLS_VERSIONS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT: Final = Security()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The SSL context for these settings. `PipelineFailed` when the certificates or the key cannot be read."""
    try:
        context = ssl.create_default_context(cadata=tls.authorities or None)
    except ssl.SSLError as error:
        raise PipelineFailed(f"kafka.ssl.truststore: these are no certificates in PEM: {error.reason}") from None
    context.check_hostname = tls.checks_hostname
    context.minimum_version, context.maximum_version = _version(tls.oldest), _version(tls.newest)
    if tls.client_certificate:
        _load_client_certificate(context, tls)
    return context


def _version(name: str) -> ssl.TLSVersion:
    return ssl.TLSVersion.TLSv1_3 if name == "TLSv1.3" else ssl.TLSVersion.TLSv1_2


def _load_client_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Load the client certificate and key. Python reads them only from a file, so a private temporary file is used."""
    with tempfile.NamedTemporaryFile("w", prefix="tailrace-", suffix=".pem") as file:
        file.write(tls.client_certificate)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: tls.key_password)
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or "a key that its password does not open, or none"
            raise PipelineFailed(
                f"kafka.ssl.keystore: it has to hold a certificate, its chain and its private key in PEM: {why}"
            ) from None


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
