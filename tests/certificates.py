"""Certificates for tests, in the PEM files that brokers and clients are given."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

LOCALHOST = ("localhost", "127.0.0.1")


class Authority:
    """A certificate authority of one test; its certificate is in the file `truststore`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._authority = trustme.CA(organization_name=name)
        self.truststore = str(folder / f"{name}.pem")
        self._authority.cert_pem.write_to_path(self.truststore)

    def keystore(self, name: str = "broker", *hosts: str, until: datetime | None = None, password: bytes = b"") -> str:
        """Write a private key, its certificate and the chain to a file; returns the path."""
        issued = self._authority.issue_cert(*(hosts or LOCALHOST), common_name=name, not_after=until)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        protection = BestAvailableEncryption(password) if password else NoEncryption()
        path = self._folder / f"{name}.pem"
        with path.open("wb") as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))  # the form that Java reads
            file.writelines(one.bytes() for one in issued.cert_chain_pems)
        return str(path)

    def mutual_tls(self) -> dict[str, Any]:
        """Settings of a broker that only clients with a certificate of this authority can use."""
        return {
            "listener_security_protocol_map": "kafka:SSL",
            "ssl_keystore_location": self.keystore(),
            "ssl_truststore_location": self.truststore,
            "ssl_client_auth": "required",
        }

    def expired(self, name: str = "expired") -> str:
        return self.keystore(name, until=datetime(2020, 1, 1, tzinfo=UTC))
