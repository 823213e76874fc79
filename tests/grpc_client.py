"""A blocking client of the gRPC door, from the descriptor set that the package ships."""

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Self

import grpc

from tailrace.doors.grpc.schema import Schema, load_schema

TIMEOUT_S: Final = 30.0


class GrpcClient:
    def __init__(self, address: str, options: Sequence[tuple[str, Any]] = ()) -> None:
        self.schema: Schema = load_schema()
        self.channel = grpc.insecure_channel(address, options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def method(self, path: str, *, raw: bool = False) -> Callable[..., Any]:
        """The method `package.Service/Method`; with `raw` its requests are bytes."""
        service, name = path.split("/")
        descriptor = self.schema.service(service).methods_by_name[name]
        kind = "_".join(
            "stream" if one else "unary" for one in (descriptor.client_streaming, descriptor.server_streaming)
        )
        found: Callable[..., Any] = getattr(self.channel, kind)(
            f"/{path}",
            request_serializer=None if raw else lambda request: request.SerializeToString(),
            response_deserializer=self.schema.message_class(descriptor.output_type).FromString,
        )
        return found

    def call(self, path: str, request: Any, timeout_s: float = TIMEOUT_S) -> Any:
        return self.method(path)(request, timeout=timeout_s, wait_for_ready=True)

    def stream(self, path: str, timeout_s: float = TIMEOUT_S) -> "ClientStream":
        return ClientStream(self.method(path), timeout_s)

    def details(self, error: grpc.RpcError) -> Any:
        """The google.rpc.Status in the trailers of a call that failed."""
        trailers = dict(error.trailing_metadata() or ())
        return self.schema.rpc.Status.FromString(trailers["grpc-status-details-bin"])

    def detail(self, error: grpc.RpcError, kind: str) -> Any | None:
        """One of the details, as `ErrorInfo`; None if it is not there."""
        for one in self.details(error).details:
            found = getattr(self.schema.rpc, kind, None) or getattr(self.schema.v1, kind)
            if one.Is(found.DESCRIPTOR):
                unpacked = found()
                one.Unpack(unpacked)
                return unpacked
        return None


class ClientStream:
    """A stream in both directions, whose requests are sent one by one."""

    def __init__(self, method: Callable[..., Any], timeout_s: float) -> None:
        self._requests: queue.Queue[Any | None] = queue.Queue()
        self.responses = method(iter(self._requests.get, None), timeout=timeout_s)

    def send(self, request: Any) -> None:
        self._requests.put(request)

    def end(self) -> None:
        self._requests.put(None)

    def receive(self) -> Any:
        return next(self.responses)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.responses)
