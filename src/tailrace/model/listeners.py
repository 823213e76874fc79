"""The names of a broker's listeners, and the security protocol of each (`listener.security.protocol.map`).

DMQP is not in the map: it uses TLS unless `dmqp.security.protocol` says otherwise.
"""

from typing import Final, Literal, get_args

KAFKA_LISTENER: Final = "kafka"  # for Kafka clients
PEER_LISTENER: Final = "peer"  # for other brokers
HTTP_LISTENER: Final = "http"
GRPC_LISTENER: Final = "grpc"
DMQP_LISTENER: Final = "dmqp"
LISTENERS: Final = (KAFKA_LISTENER, PEER_LISTENER, HTTP_LISTENER, GRPC_LISTENER)  # those of the map

SecurityProtocol = Literal["PLAINTEXT", "SSL"]


def security_protocol(mapping: str, listener: str) -> SecurityProtocol:
    """The protocol of a listener; PLAINTEXT if the map does not name the listener."""
    return _parsed(mapping).get(listener, "PLAINTEXT")


def is_protocol_map(text: str) -> bool:
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def _parsed(text: str) -> dict[str, SecurityProtocol]:
    found: dict[str, SecurityProtocol] = {}
    for pair in text.split(",") if text else ():
        listener, _, protocol = pair.strip().partition(":")
        if listener not in LISTENERS or protocol not in get_args(SecurityProtocol) or listener in found:
            raise ValueError(pair)
        found[listener] = protocol  # type: ignore[assignment]
    return found
