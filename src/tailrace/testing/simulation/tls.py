"""Simulated TLS: no bytes are encrypted, but a handshake takes time, can fail, and checks what a real one checks.

Files are only names. A certificate is accepted by those that have the same truststore.
"""

from math import inf

from tailrace.ports.tls import Tls, TlsFiles


class SimTls:
    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self.expires_at = inf

    def has_changed(self) -> bool:
        return False

    def reload(self) -> None:
        pass


def handshake_problem(client: Tls | None, server: Tls | None) -> str:
    """Why a client and a listener cannot agree; "" if they can."""
    if client is None or server is None:
        return "only one side uses TLS"
    assert isinstance(client, SimTls)
    assert isinstance(server, SimTls)
    theirs, ours = client.files, server.files
    if theirs.truststore != ours.truststore:
        return "the client does not trust the certificate of the listener"
    if ours.client_auth == "required" and not theirs.keystore:
        return "the client has no certificate, and ssl.client.auth is required"
    return ""
