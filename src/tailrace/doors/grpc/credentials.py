"""TLS of the gRPC door: the listener's certificates, as gRPC wants them, which has TLS of its own.

The files are those of `ports/tls`, which has checked them. Before each handshake gRPC asks, in a thread of its own,
whether there are new ones: there are when the listener's were loaded again. What gRPC cannot use changes nothing: the
old ones stay in use.

gRPC cannot open an encrypted private key, so that is done here, by the package cryptography. And it asks clients for a
certificate only if they need one: `ssl.client.auth=requested` is `none` here.
"""

import logging
from typing import Any, Final

import grpc

from tailrace.ports import BadCertificates
from tailrace.ports.tls import PemStores, SystemTls

logger: Final = logging.getLogger(__name__)

ENCRYPTED: Final = "ENCRYPTED"  # in the first line of an encrypted key, or in a line below it


def server_credentials(tls: SystemTls) -> grpc.ServerCredentials:
    """BadCertificates if gRPC could not use the files."""
    current = _Current(tls)
    required = tls.files.client_auth == "required"
    return grpc.dynamic_ssl_server_credentials(current.read(), current.if_new, require_client_authentication=required)


class _Current:
    def __init__(self, tls: SystemTls) -> None:
        self._tls = tls
        self._given: Any = None  # the context that was loaded together with what gRPC was given

    def read(self) -> Any:
        """The certificates as gRPC has them."""
        self._given = self._tls.server
        stores = self._tls.stores()
        keystore = _opened(stores, self._tls.files.keystore)
        return grpc.ssl_server_certificate_configuration(
            [(keystore, stores.keystore.encode())], root_certificates=stores.truststore.encode() or None
        )

    def if_new(self) -> Any:
        """What gRPC asks before each handshake; None: no change."""
        if self._given is self._tls.server:
            return None
        try:
            return self.read()
        except BadCertificates as error:
            logger.error("the certificates of the grpc listener stay as they were: %s", error)
            return None


def _opened(stores: PemStores, path: str) -> bytes:
    """A keystore whose private key is not encrypted."""
    if ENCRYPTED not in stores.keystore:
        return stores.keystore.encode()
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )
    except ImportError:
        raise BadCertificates(
            f"{path}: gRPC needs the package cryptography to open an encrypted private key: "
            "pip install 'tailrace[dmqp]'"
        ) from None
    try:
        key = load_pem_private_key(stores.keystore.encode(), stores.key_password.encode())
    except (ValueError, TypeError) as error:
        raise BadCertificates(f"{path}: {error}") from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
