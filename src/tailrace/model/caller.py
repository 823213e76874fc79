"""Who calls a service: every call names its caller, so that permissions, quotas and metrics stand in one place."""

from typing import Final

from tailrace.model.frozen import frozen

ANONYMOUS: Final = "User:ANONYMOUS"  # Kafka's name for a client that has not authenticated


@frozen
class Caller:
    principal: str = ANONYMOUS
    client_id: str | None = None  # what the client calls itself; not verified
    host: str = ""  # the address the client connects from
    listener: str = ""  # the listener it came in through


BROKER: Final = Caller(principal="User:BROKER")  # work that a broker does on its own behalf
