"""Client id and host of a group member, as Kafka describes them."""

from tailrace.doors.kafka.call import Call


def client_id(call: Call) -> str:
    return call.caller.client_id or ""


def client_host(call: Call) -> str:
    """With a leading slash, as Kafka shows addresses."""
    return "/" + call.caller.host
