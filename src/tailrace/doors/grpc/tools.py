"""What tools expect of any gRPC server: health checking, and reflection."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tailrace.client.faults import Refused
from tailrace.doors.grpc.calls import Call, Service, Stream
from tailrace.doors.grpc.schema import HEALTH, REFLECTION, Schema
from tailrace.doors.grpc.statuses import Code
from tailrace.wire.errors import Error


class Health:
    """The server serves all its services, or none: while it starts and stops, none."""

    def __init__(self, schema: Schema, services: Sequence[str]) -> None:
        self._types = schema.health
        self._status = schema.health.HealthCheckResponse.ServingStatus
        self._services = ("", *services)
        self._is_serving = False
        self._changed: asyncio.Future[None] | None = None

    def service(self) -> Service:
        return Service(name=HEALTH, unary={"Check": self.check, "List": self.list}, streaming={"Watch": self.watch})

    def set(self, *, is_serving: bool) -> None:
        self._is_serving = is_serving
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)

    def _response(self, service: str) -> Any:
        if service not in self._services:
            return self._types.HealthCheckResponse(status=self._status.Value("SERVICE_UNKNOWN"))
        name = "SERVING" if self._is_serving else "NOT_SERVING"
        return self._types.HealthCheckResponse(status=self._status.Value(name))

    async def check(self, request: Any, call: Call) -> Any:
        if request.service not in self._services:
            raise Refused(Error.RESOURCE_NOT_FOUND, f"find service {request.service}", "this server does not have it")
        return self._response(request.service)

    async def list(self, request: Any, call: Call) -> Any:
        return self._types.HealthListResponse(statuses={name: self._response(name) for name in self._services})

    async def watch(self, stream: Stream) -> None:
        request = await stream.read()
        while request is not None:
            await stream.write(self._response(request.service))
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)


class Reflection:
    def __init__(self, schema: Schema, services: Sequence[str]) -> None:
        self._schema = schema
        self._types = schema.reflection
        self._services = sorted([*services, HEALTH, REFLECTION])

    def service(self) -> Service:
        return Service(name=REFLECTION, unary={}, streaming={"ServerReflectionInfo": self.serve})

    async def serve(self, stream: Stream) -> None:
        while (request := await stream.read()) is not None:
            response = self._types.ServerReflectionResponse(valid_host=request.host)
            response.original_request.CopyFrom(request)
            self._fill(request, response)
            await stream.write(response)

    def _fill(self, request: Any, response: Any) -> None:
        pool = self._schema.pool
        asked = request.WhichOneof("message_request")
        try:
            match asked:
                case "list_services":
                    for name in self._services:
                        response.list_services_response.service.add(name=name)
                case "file_by_filename":
                    self._add_files(response, pool.FindFileByName(request.file_by_filename))
                case "file_containing_symbol":
                    self._add_files(response, pool.FindFileContainingSymbol(request.file_containing_symbol))
                case "all_extension_numbers_of_type":
                    name = request.all_extension_numbers_of_type
                    pool.FindMessageTypeByName(name)
                    response.all_extension_numbers_response.base_type_name = name  # there are no extensions
                case _:
                    raise KeyError(f"this server does not have {asked!r}")
        except KeyError as missing:
            response.error_response.error_code = Code.NOT_FOUND
            response.error_response.error_message = str(missing.args[0])

    def _add_files(self, response: Any, file: Any) -> None:
        """The file, then all that it imports."""
        waiting, known = [file], {file.name: None}
        while waiting:
            one = waiting.pop(0)
            response.file_descriptor_response.file_descriptor_proto.append(one.serialized_pb)
            for imported in one.dependencies:
                if imported.name not in known:
                    known[imported.name] = None
                    waiting.append(imported)
