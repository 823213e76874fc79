"""How a connection is made safe before the first question: TLS around it, a name and a password within.

These are values: they travel to tasks with what was asked of them. Certificates and keys are in them as text, so the
files that they came from have to be on the driver's machine alone. Nothing that is secret is shown when they are.
"""

import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from tailrace.pipeline.failure import BrokersSilent, PipelineFailed

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")  # as Java names them, the older one first
PASSING: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # as when a broker stops just now

IF_IT_STAYS_SO: Final = (
    "If that stays so: does this port want TLS, or none, or a certificate, or a login? kafka.security.protocol and "
    "what belongs to it say how to come"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    authorities: str = ""  # certificates to trust, in PEM; empty: those that the system trusts
    own: str = field(default="", repr=False)  # our certificate, its chain and its key, in PEM; empty: we have none
    key_password: str = field(default="", repr=False)
    checks_name: bool = True  # whether the broker's certificate has to be for the host that we called
    oldest: str = TLS_VERSIONS[0]  # of what may be spoken
    newest: str = TLS_VERSIONS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    mechanism: Mechanism
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT: Final = Security()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What TLS needs to know. `PipelineFailed` when certificates or the key cannot be read."""
    try:
        context = ssl.create_default_context(cadata=tls.authorities or None)
    except ssl.SSLError as error:
        raise PipelineFailed(f"kafka.ssl.truststore: these are no certificates in PEM: {error.reason}") from None
    context.check_hostname = tls.checks_name
    context.minimum_version, context.maximum_version = _version(tls.oldest), _version(tls.newest)
    if tls.own:
        _present(context, tls)
    return context


def _version(name: str) -> ssl.TLSVersion:
    return ssl.TLSVersion.TLSv1_3 if name == "TLSv1.3" else ssl.TLSVersion.TLSv1_2


def _present(context: ssl.SSLContext, tls: Tls) -> None:
    """Python takes its own certificate and key from a file alone, so there is one for a moment, for nobody else."""
    with tempfile.NamedTemporaryFile("w", prefix="tailrace-", suffix=".pem") as file:
        file.write(tls.own)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: tls.key_password)
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or "a key that its password does not open, or none"
            raise PipelineFailed(
                f"kafka.ssl.keystore: it has to hold a certificate, its chain and its private key in PEM: {why}"
            ) from None


def no_tls(address: str, error: ssl.SSLError) -> PipelineFailed:
    """What to say when TLS with a broker fails: for good, unless the broker just went away."""
    if isinstance(error, PASSING):
        return BrokersSilent(f"the connection to {address} broke: it was closed in the midst of TLS. {IF_IT_STAYS_SO}")
    why = getattr(error, "verify_message", "") or error.reason or "it speaks another language"
    return PipelineFailed(
        f"no TLS with {address}: {why}. Is it a port for TLS? Is its certificate for that name, and signed by one in "
        "kafka.ssl.truststore.location? Does it want one of ours (kafka.ssl.keystore.location)?"
    )
