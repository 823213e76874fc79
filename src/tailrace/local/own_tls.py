"""TLS from this process to the brokers that it started, at the listener of Kafka clients.

It trusts the very certificates in the brokers' keystore, whatever name they are for: brokers are reached on the
loopback address, and the authority may be in a truststore that only clients have. Where brokers ask for a certificate,
they are shown their own.
"""

import ssl

from tailrace.local.broker import BrokerFailed
from tailrace.model.listeners import KAFKA_LISTENER, security_protocol
from tailrace.model.settings import Settings
from tailrace.ports.pem import BadPem, client_context, read_pem


def tls_to_own_brokers(settings: Settings) -> ssl.SSLContext | None:
    """None if the listener does not use TLS. `BrokerFailed` if the keystore cannot be used."""
    if security_protocol(settings.listener_security_protocol_map, KAFKA_LISTENER) != "SSL":
        return None
    path = settings.ssl_keystore_location
    try:
        keystore = read_pem(path)
        own = "" if settings.ssl_client_auth == "none" else keystore
        context = client_context(keystore, own, settings.ssl_key_password)
    except OSError as error:
        raise BrokerFailed(f"ssl.keystore.location = {path}: {error.strerror}") from None
    except BadPem as bad:
        raise BrokerFailed(f"ssl.keystore.location = {path}: {bad}") from None
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
