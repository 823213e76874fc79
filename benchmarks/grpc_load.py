"""A process whose clients call the gRPC door one after the other, and which keeps how long each call took.

Clients produce batches to a partition, or read a topic from its beginning on, each for a group of its own; all of them
share one process, in which gRPC runs on an event loop. Requests to produce are serialized beforehand.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any, Final, Literal

from benchmarks.processes import cpu_seconds, measure

WARM_UP_SHARE: Final = 0.1
VALUE: Final = "x" * 100
STREAM_UNDER_WAY: Final = 8  # requests of a stream without an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcWork:
    address: str
    pid: int  # of the server
    does: Literal["produce", "stream", "consume"]
    topic: str
    partitions: int
    clients: int
    batch: int
    calls: int  # of all clients together


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcRun:
    messages: int
    seconds: float
    cpu_seconds: float  # of the server
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.messages / self.cpu_seconds


def measured(work: GrpcWork) -> GrpcRun:
    return GrpcRun(**measure("benchmarks.grpc_load", work))


def make_topic(address: str, name: str, partitions: int) -> None:
    import grpc

    from tailrace.doors.grpc.schema import load_schema

    request = load_schema().v1.CreateTopicRequest(name=name, partitions=partitions)
    with grpc.insecure_channel(address) as channel:
        channel.unary_unary("/tailrace.v1.Topics/CreateTopic")(request.SerializeToString(), wait_for_ready=True)


class Clients:
    """The clients of one process, over one channel each four of them."""

    def __init__(self, work: GrpcWork) -> None:
        from grpc import aio

        from tailrace.doors.grpc.schema import load_schema

        self._work = work
        self._schema = load_schema()
        self._channels = [
            aio.insecure_channel(work.address, options=[("grpc.use_local_subchannel_pool", 1)])
            for _ in range((work.clients + 3) // 4)
        ]
        self.messages = 0
        self.took: list[float] = []

    async def run(self, client: int, calls: int) -> None:
        await getattr(self, f"_{self._work.does}")(client, calls)

    def _call(self, client: int, service: str, method: str) -> Any:
        descriptor = self._schema.service(service).methods_by_name[method]
        channel = self._channels[client % len(self._channels)]
        make = channel.stream_stream if descriptor.client_streaming else channel.unary_unary
        response = self._schema.message_class(descriptor.output_type)
        return make(f"/{service}/{method}", response_deserializer=response.FromString)

    async def _produce(self, client: int, calls: int) -> None:
        work, types = self._work, self._schema.queue
        call = self._call(client, "message_queue.MessageQueue", "ProduceMessages")
        message = types.Message(key="k", value=VALUE, topic=work.topic, partition=client % work.partitions)
        request = types.ProduceMessagesRequest(messages=[message] * work.batch).SerializeToString()
        for _ in range(calls):
            began = time.perf_counter()
            answer = await call(request)
            self._note(began, work.batch)
            assert answer.success, answer.error_message

    async def _stream(self, client: int, calls: int) -> None:
        """With some requests under way."""
        work, types = self._work, self._schema.v1
        record = types.NewRecord(key=b"k", value=VALUE.encode(), partition=client % work.partitions)
        request = types.ProduceStreamRequest(topic=work.topic, records=[record] * work.batch).SerializeToString()
        stream = self._call(client, "tailrace.v1.Producer", "ProduceStream")()
        began: list[float] = []
        under_way = asyncio.Semaphore(STREAM_UNDER_WAY)

        async def send() -> None:
            for _ in range(calls):
                await under_way.acquire()
                began.append(time.perf_counter())
                await stream.write(request)
            await stream.done_writing()

        sending = asyncio.ensure_future(send())
        for number in range(calls):
            answer = await stream.read()
            assert not answer.HasField("error"), answer
            self._note(began[number], work.batch)
            under_way.release()
        await sending

    async def _consume(self, client: int, calls: int) -> None:
        work, types = self._work, self._schema.queue
        call = self._call(client, "message_queue.MessageQueue", "ConsumeMessages")
        start = 0
        for _ in range(calls):
            request = types.ConsumeMessagesRequest(
                group_id=f"g{client}",
                topic=work.topic,
                partition=client % work.partitions,
                start_offset=start,
                max_messages=work.batch,
            )
            began = time.perf_counter()
            answer = await call(request.SerializeToString())
            assert answer.success, answer.error_message
            self._note(began, len(answer.messages))
            start = answer.messages[-1].offset + 1 if answer.messages else 0

    def _note(self, began: float, messages: int) -> None:
        self.took.append(time.perf_counter() - began)
        self.messages += messages


async def run(work: GrpcWork) -> GrpcRun:
    clients = Clients(work)
    each = work.calls // work.clients
    await asyncio.gather(*(clients.run(one, max(1, int(each * WARM_UP_SHARE))) for one in range(work.clients)))
    clients.took.clear()
    clients.messages = 0
    cpu, began = cpu_seconds(work.pid), time.perf_counter()
    await asyncio.gather(*(clients.run(one, each) for one in range(work.clients)))
    seconds, used = time.perf_counter() - began, cpu_seconds(work.pid) - cpu
    p99_ms = sorted(clients.took)[int(0.99 * len(clients.took))] * 1000
    return GrpcRun(messages=clients.messages, seconds=seconds, cpu_seconds=max(used, 0.01), p99_ms=p99_ms)


if __name__ == "__main__":
    import uvloop

    outcome = uvloop.run(run(GrpcWork(**json.loads(sys.argv[1]))))
    print(json.dumps({name: getattr(outcome, name) for name in GrpcRun.__slots__}))
