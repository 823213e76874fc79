"""Health checking and reflection."""

import asyncio

import pytest
from google.protobuf import descriptor_pb2

from tailrace.client.faults import Refused
from tailrace.doors.grpc.schema import MESSAGE_QUEUE, load_schema
from tailrace.doors.grpc.statuses import Code
from tailrace.doors.grpc.tools import Health, Reflection
from tests.unit.doors.grpc.served import LOCAL, Conversation

SCHEMA = load_schema()
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


def test_health_follows_the_door() -> None:
    async def run() -> None:
        health, request = Health(SCHEMA, [MESSAGE_QUEUE]), SCHEMA.health.HealthCheckRequest
        assert (await health.check(request(), LOCAL)).status == NOT_SERVING
        stream = Conversation([request(service=MESSAGE_QUEUE)])
        watching = asyncio.ensure_future(health.watch(stream))
        assert (await stream.received()).status == NOT_SERVING
        health.set(is_serving=True)
        assert (await stream.received()).status == SERVING
        assert (await health.check(request(service=MESSAGE_QUEUE), LOCAL)).status == SERVING
        assert (await health.list(None, LOCAL)).statuses[""].status == SERVING
        watching.cancel()

    asyncio.run(run())


def test_a_service_that_is_not_there_is_unknown() -> None:
    async def run() -> None:
        health, request = Health(SCHEMA, [MESSAGE_QUEUE]), SCHEMA.health.HealthCheckRequest(service="none")
        with pytest.raises(Refused, match="none"):
            await health.check(request, LOCAL)
        stream = Conversation([request])
        watching = asyncio.ensure_future(health.watch(stream))
        assert (await stream.received()).status == SERVICE_UNKNOWN
        watching.cancel()

    asyncio.run(run())


def test_reflection_tells_services_and_files() -> None:
    async def run() -> None:
        request = SCHEMA.reflection.ServerReflectionRequest
        stream = Conversation(
            [
                request(list_services=""),
                request(file_containing_symbol="tailrace.v1.Producer"),
                request(file_by_filename="message_queue.proto"),
                request(file_containing_symbol="no.such"),
                request(),
            ]
        )
        stream.end()
        await Reflection(SCHEMA, [MESSAGE_QUEUE]).serve(stream)
        services, symbol, file, missing, nothing = [await stream.received() for _ in range(5)]
        assert MESSAGE_QUEUE in [one.name for one in services.list_services_response.service]
        parse = descriptor_pb2.FileDescriptorProto.FromString
        names = [parse(one).name for one in symbol.file_descriptor_response.file_descriptor_proto]
        assert names[0] == "tailrace_v1/producer.proto"
        assert {"tailrace_v1/records.proto", "google/rpc/status.proto", "google/protobuf/any.proto"} <= set(names)
        assert parse(file.file_descriptor_response.file_descriptor_proto[0]).package == "message_queue"
        assert missing.error_response.error_code == nothing.error_response.error_code == Code.NOT_FOUND

    asyncio.run(run())
