"""Where clients reach one listener of a broker: what it registers from the level on at which endpoints have names."""

from tailrace.wire.schema import Int32, struct


@struct
class RegisteredEndpoint:
    name: str  # of the listener, such as "kafka" or "http"
    host: str
    port: Int32
