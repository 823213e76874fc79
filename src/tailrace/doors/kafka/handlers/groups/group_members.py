"""How group members are described by what is known of their client."""

from tailrace.doors.kafka.call import Call


def client_id(call: Call) -> str:
    return call.caller.client_id or ""


def client_host(call: Call) -> str:
    """With a slash in front, as Kafka shows addresses."""
    return "/" + call.caller.host
