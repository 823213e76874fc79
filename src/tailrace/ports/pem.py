"""Certificates and keys of clients as PEM text: read from files, and made into an SSL context."""

import ssl
import tempfile
from pathlib import Path
from typing import Literal


class BadPem(Exception):
    """Text that cannot be used: `store` says whether it is that of the truststore or of the keystore."""

    def __init__(self, store: Literal["truststore", "keystore"], why: str) -> None:
        super().__init__(why)
        self.store = store


def read_pem(path: str) -> str:
    """The text of a file; bytes that no PEM file has are replaced. OSError if it cannot be read."""
    return Path(path).read_bytes().decode("ascii", "replace")


def client_context(authorities: str, own: str, key_password: str) -> ssl.SSLContext:
    """An SSL context for a client that trusts these authorities (empty: the system's) and shows its own certificate
    (empty: none). `own` has the private key, the certificate and its chain."""
    try:
        context = ssl.create_default_context(cadata=authorities or None)
    except ssl.SSLError as error:
        raise BadPem("truststore", f"these are no certificates in PEM: {error.reason}") from None
    if own:
        _load(context, own, key_password)
    return context


def _load(context: ssl.SSLContext, own: str, key_password: str) -> None:
    """Python reads certificate and key only from a file, so a private temporary file is used."""
    with tempfile.NamedTemporaryFile("w", prefix="tailrace-", suffix=".pem") as file:
        file.write(own)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: key_password)
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or "a key that its password does not open, or none"
            wanted = "it has to hold a certificate, its chain and its private key in PEM"
            raise BadPem("keystore", f"{wanted}: {why}") from None
