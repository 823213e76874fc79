"""TLS: certificates from PEM files, in Kafka's form, and how they are checked and reloaded.

A keystore file has a private key, its certificate and the chain of that certificate; a truststore file has the
certificates of trusted authorities. Both are read and checked completely before they come into use: `reload` either
takes all of the new files or keeps all of the old. New connections use what was loaded last; open ones stay as they
are.
"""

import re
import ssl
from collections.abc import Callable
from dataclasses import field
from os import stat
from typing import Final, Literal, Protocol

from tailrace.model.frozen import frozen

ClientAuth = Literal["none", "requested", "required"]
VERIFY_MODES: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
CERTIFICATE_BLOCK: Final = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@frozen
class TlsFiles:
    """The PEM files of a listener or a client, and how the other side is verified."""

    keystore: str = ""  # private key, certificate and its chain; a listener needs them, a client may have none
    key_password: str = field(default="", repr=False)
    truststore: str = ""  # authorities whose certificates are accepted; empty: those of the operating system
    client_auth: ClientAuth = "none"  # whether a listener asks clients for a certificate, and whether they need one
    checks_hostname: bool = True  # whether a client compares the name in the server's certificate with its host name


@frozen
class PemStores:
    """The content of a listener's files, for libraries that have TLS of their own."""

    keystore: str = field(repr=False)
    key_password: str = field(repr=False)
    truststore: str  # empty: there is none


class BadCertificates(Exception):
    """Files that cannot be used; the message names the file and tells the operator why."""


class Tls(Protocol):
    """Loaded certificates, with which a `Net` listens or connects."""

    @property
    def expires_at(self) -> float:
        """When the own certificate expires, in seconds of wall-clock time; infinity without a keystore."""
        ...

    def has_changed(self) -> bool:
        """Whether the files were written since they were loaded, or since the last reload that failed."""
        ...

    def reload(self) -> None:
        """Load the files again. BadCertificates if they cannot be used: the old certificates stay in use."""
        ...


class SystemTls:
    def __init__(self, files: TlsFiles) -> None:
        self.files: Final = files
        self._seen: tuple[tuple[int, int], ...] = ()
        self.reload()

    def reload(self) -> None:
        self._seen = self._stamps()
        server, client = _server_context(self.files), _client_context(self.files)
        self.expires_at = _check_own_certificate(self.files, server) if self.files.keystore else float("inf")
        self.server, self.client = server, client  # both are new after each reload

    def has_changed(self) -> bool:
        return self._stamps() != self._seen

    def stores(self) -> PemStores:
        """The files as they are now. BadCertificates if they cannot be read."""
        files = self.files
        truststore = _read(files.truststore) if files.truststore else ""
        return PemStores(keystore=_read(files.keystore), key_password=files.key_password, truststore=truststore)

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        """Of each file the inode and the time of its last change: both, since a file may be replaced or rewritten."""
        stamps = []
        for path in filter(None, (self.files.keystore, self.files.truststore)):
            try:
                found = stat(path)
                stamps.append((found.st_ino, found.st_mtime_ns))
            except OSError:
                stamps.append((0, 0))
        return tuple(stamps)


class ClientTls:
    """TLS for connecting only, with a context that was made of a client's settings."""

    expires_at = float("inf")

    def __init__(self, context: ssl.SSLContext) -> None:
        self.client = context

    def has_changed(self) -> bool:
        return False

    def reload(self) -> None:
        """There are no files to load."""


def _server_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if files.keystore:
        _load_keystore(context, files)
    if files.client_auth != "none":
        context.verify_mode = VERIFY_MODES[files.client_auth]
        _load_truststore(context, files)
    return context


def _client_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = files.checks_hostname
    if files.keystore:
        _load_keystore(context, files)
    _load_truststore(context, files)
    return context


def _load_keystore(context: ssl.SSLContext, files: TlsFiles) -> None:
    def load() -> None:
        context.load_cert_chain(files.keystore, password=lambda: files.key_password)

    _load(load, files.keystore, "a private key (encrypted only with ssl.key.password), its certificate and its chain")


def _load_truststore(context: ssl.SSLContext, files: TlsFiles) -> None:
    if not files.truststore:
        context.load_default_certs()
        return
    _load(lambda: context.load_verify_locations(files.truststore), files.truststore, "certificates of authorities")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise BadCertificates(f"{path}: {error.strerror}") from None


def _load(load: Callable[[], None], path: str, content: str) -> None:
    try:
        load()
    except ssl.SSLError as error:
        mismatch = "the key does not belong to the certificate: " if error.reason == "KEY_VALUES_MISMATCH" else ""
        raise BadCertificates(f"{path}: {mismatch}the file must have {content}, in PEM") from None
    except (OSError, ValueError) as error:
        raise BadCertificates(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _check_own_certificate(files: TlsFiles, server: ssl.SSLContext) -> float:
    """Shake hands with a client in memory that trusts exactly this certificate; returns when it expires.

    So OpenSSL itself tells whether the certificate has expired, or is not valid yet.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        with open(files.keystore, encoding="ascii", errors="replace") as file:
            # Not loaded by its path: OpenSSL would ask the terminal for the password of an encrypted key.
            client.load_verify_locations(cadata="\n".join(CERTIFICATE_BLOCK.findall(file.read())))
        certificate = _certificate_shown(server, client)
    except ssl.SSLCertVerificationError as error:
        raise BadCertificates(f"{files.keystore}: {error.verify_message}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise BadCertificates(f"{files.keystore}: TLS is not possible with it: {why}") from None
    return float(ssl.cert_time_to_seconds(certificate["notAfter"]))


def _certificate_shown(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, str]:
    """The certificate that a client of this server receives and accepts."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in (ends[0], ends[1], ends[0]):  # a client knows the certificate when it has read the server's first flight
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return ends[0].getpeercert() or {}  # type: ignore[return-value]
