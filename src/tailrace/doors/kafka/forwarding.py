"""Requests that only the controller can serve, asked of any broker (as Kafka's KIP-590 does).

They go there in the client's own bytes and come back as the bytes of the answer. Where the controller cannot be reached
in the time that the client allows the request is served here, and each of its parts is answered with NOT_CONTROLLER,
which clients retry.
"""

from typing import TYPE_CHECKING, Any, Final, cast

from tailrace.cluster.features import may_forward
from tailrace.doors.kafka.call import Call, Written
from tailrace.doors.kafka.registry import APIS, Api
from tailrace.doors.kafka.request_timeout import request_timeout_s
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.compile import decode, encode
from tailrace.wire.messages.peers.forward import Forward

if TYPE_CHECKING:
    from tailrace.broker.node import Node
    from tailrace.doors.kafka.connection import KafkaConnection

NO_FRAME: Final = memoryview(b"")


async def serve(api: Api, request: Any, call: Call) -> Any:
    """Serve a request here, or have it served."""
    assert api.handler is not None
    if api.by_controller and not call.node.is_controller and _is_known_to_controller(call.node, api.key, call.version):
        try:
            forward = Forward(api_key=api.key, api_version=call.version, body=call.body)
            answer = await call.node.calls.controller(forward, request_timeout_s(request))
        except Fault:
            return await api.handler(request, call)
        return Written(answer.body)
    return await api.handler(request, call)


def _is_known_to_controller(node: "Node", key: int, version: int) -> bool:
    """Whether the controller's release can serve this request. One that is not known yet may."""
    controller = node.hosted.image.brokers.get(node.controller_id)
    return controller is None or may_forward(controller.features, key, version)


async def serve_forwarded(node: "Node", key: int, version: int, body: bytes) -> bytes:
    """The body of the answer to a request that another broker has passed on."""
    api = APIS.get(key)
    if api is None or not api.by_controller or api.request is None or api.handler is None:
        raise InvalidRequest(f"API {key} is not passed on between brokers")
    request: Any = decode(api.request, version, memoryview(body), 0, api.elements_max)[0]
    nobodys = cast("KafkaConnection", None)  # what is passed on needs no connection
    response = await api.handler(request, Call(node, nobodys, NO_FRAME, 0, version, 0, None))
    return encode(response, version)
