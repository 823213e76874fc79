"""How a connection is secured before the first request: TLS, and SASL with a user name and a password.

The settings are plain values, which may be sent to other processes. Certificates and keys are included as text, so
their files are needed only where the settings are read (`security_settings`). The `repr` shows no secrets.
"""

import ssl
from dataclasses import field
from typing import Final

from tailrace.client.faults import ClientError
from tailrace.client.sasl import Sasl
from tailrace.model.frozen import frozen
from tailrace.ports.pem import BadPem, client_context

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")  # Java's names, oldest first


class BadSetting(ClientError):
    """A setting of TLS or SASL cannot be used; the message names it, and never the value of a secret one."""


@frozen
class TlsSettings:
    authorities: str = ""  # trusted CA certificates, in PEM; empty: the system's CA certificates
    client_certificate: str = field(default="", repr=False)  # client certificate, chain and key, in PEM; empty: none
    key_password: str = field(default="", repr=False)
    checks_hostname: bool = True  # whether the broker's certificate must match the host name
    oldest: str = TLS_VERSIONS[0]  # `oldest` and `newest` are the TLS versions allowed
    newest: str = TLS_VERSIONS[-1]


@frozen
class Security:
    tls: TlsSettings | None = None
    sasl: Sasl | None = None


PLAINTEXT: Final = Security()


def tls_context(tls: TlsSettings, prefix: str = "") -> ssl.SSLContext:
    """The SSL context for these settings. `BadSetting` when the certificates or the key cannot be read; `prefix` stands
    before the names of settings in its message."""
    try:
        context = client_context(tls.authorities, tls.client_certificate, tls.key_password)
    except BadPem as bad:
        raise BadSetting(f"{prefix}ssl.{bad.store}: {bad}") from None
    context.check_hostname = tls.checks_hostname
    context.minimum_version, context.maximum_version = _version(tls.oldest), _version(tls.newest)
    return context


def _version(name: str) -> ssl.TLSVersion:
    return ssl.TLSVersion.TLSv1_3 if name == "TLSv1.3" else ssl.TLSVersion.TLSv1_2
