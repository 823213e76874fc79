"""Forwarding: a client may send requests that only the controller can serve to any broker (KIP-590).

The broker forwards the bytes of the request to the controller, with the client's principal, and returns the bytes of
the response. If the controller does not answer within the request's timeout, the broker runs the handler itself, which
answers every part of the request with NOT_CONTROLLER, which clients retry.
"""

from typing import TYPE_CHECKING, Any

from tailrace.broker.services import Caller
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.broker.services.transactions import NO_CONNECTION
from tailrace.doors.kafka.call import Call, WireCall, Written
from tailrace.doors.kafka.registry import APIS, Api
from tailrace.doors.kafka.request_timeout import request_timeout_s
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.compile import decode, encode

if TYPE_CHECKING:
    from tailrace.doors.kafka.door import KafkaDoor


async def serve(api: Api, request: Any, call: WireCall) -> Any:
    """Serve a request on this broker, or forward it to the controller."""
    assert api.handler is not None
    admin = call.services.admin
    if api.by_controller and not admin.is_controller and admin.may_forward(api.key, call.version):
        try:
            body = await admin.forward(call.caller, api.key, call.version, call.body, request_timeout_s(request))
        except Fault:
            return await api.handler(request, call)
        return Written(body)
    return await api.handler(request, call)


class ForwardedRequests:
    """The `Client` of requests that other brokers forward to this one: it has no connection to this broker."""

    connection_number = NO_CONNECTION

    def __init__(self, door: "KafkaDoor") -> None:
        self.door = door

    @property
    def time_slice(self) -> TimeSlice:
        return TimeSlice(self.door.slices, self.door.clock)

    async def serve(self, who: Caller, key: int, version: int, body: bytes) -> bytes:
        """Serve a forwarded request; returns the body of the response."""
        api = APIS.get(key)
        if api is None or not api.by_controller or api.request is None or api.handler is None:
            raise InvalidRequest(f"requests of API key {key} are not forwarded between brokers")
        request: Any = decode(api.request, version, memoryview(body), 0, api.elements_max)[0]
        return encode(await api.handler(request, Call(self, version, who)), version)
