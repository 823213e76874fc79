"""The security of a command's connections in librdkafka's settings, which differ from those of Kafka's own client."""

from tailrace.cli.client.client_config import Access
from tailrace.cli.failure import Misused
from tailrace.client.sasl import Sasl
from tailrace.client.security import TLS_VERSIONS, TlsSettings


def librdkafka_security(access: Access) -> dict[str, str]:
    tls, sasl = access.security.tls, access.security.sasl
    protocol = ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT")
    found = {"security.protocol": protocol}
    if tls is not None:
        found |= _tls(access, tls)
    if sasl is not None:
        found |= _sasl(sasl)
    return found


def _tls(access: Access, tls: TlsSettings) -> dict[str, str]:
    if (tls.oldest, tls.newest) != (TLS_VERSIONS[0], TLS_VERSIONS[-1]):
        raise Misused(
            f"--client-config {access.config}: this command cannot choose TLS versions: leave ssl.protocol and "
            "ssl.enabled.protocols out."
        )
    found = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_hostname else "none"}
    if tls.authorities:
        found["ssl.ca.pem"] = tls.authorities
    if access.keystore:
        found |= {"ssl.certificate.location": access.keystore, "ssl.key.location": access.keystore}
    elif tls.client_certificate:
        found |= {"ssl.certificate.pem": tls.client_certificate, "ssl.key.pem": tls.client_certificate}
    if tls.key_password:
        found["ssl.key.password"] = tls.key_password
    return found


def _sasl(sasl: Sasl) -> dict[str, str]:
    return {"sasl.mechanism": sasl.mechanism, "sasl.username": sasl.username, "sasl.password": sasl.password}
