"""Three simulated brokers that fail, with the services of the gRPC door, and clients of `message_queue.MessageQueue`.

gRPC itself cannot be simulated. So a call is a coroutine on the machine of the broker that is called: it is lost when
that broker crashes, and its client waits for it only so long.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tailrace.broker.node import Node
from tailrace.doors.door import Door
from tailrace.doors.grpc.calls import Call, Service
from tailrace.doors.grpc.message_queue.service import MessageQueue
from tailrace.doors.grpc.message_queue.translation import message_queue
from tailrace.doors.grpc.schema import Schema, load_schema
from tailrace.doors.in_broker import BrokerHost
from tailrace.model.addresses import Address
from tailrace.model.caller import Caller
from tailrace.model.listeners import GRPC_LISTENER
from tailrace.ports import Ports
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.simulation import Crashed, World
from tests.simulation.door_stage import ANSWER_MAX_S, RETRY_S, DoorServer, DoorStage, run_stage

PORT: Final = 50051
TOPIC: Final = "orders"
PRODUCERS: Final = 3  # one for each partition
BATCHES: Final = 25  # of each
BATCH: Final = 4
CALL: Final = Call(caller=Caller(host="127.0.0.1", listener=GRPC_LISTENER))


class StandIn:
    """Registers a gRPC listener that is called without gRPC."""

    listener_name: Final = GRPC_LISTENER

    def __init__(self, name: str) -> None:
        self.endpoint = Address(name, PORT)

    async def listen(self) -> None: ...
    def open(self) -> None: ...
    def close(self) -> None: ...


class GrpcServer(DoorServer):
    service: Service | None = None

    def __init__(self, world: World, number: int, plan: Plan, schema: Schema) -> None:
        super().__init__(world, number, plan)
        self._schema = schema

    async def _serve(self, ports: Ports) -> None:
        self.service = None
        await super()._serve(ports)

    def door_of(self, node: Node) -> Door:
        return StandIn(self.name)

    def opened(self, node: Node) -> None:
        self.service = message_queue(MessageQueue(BrokerHost(node, lambda: None).upstream), self._schema)


@dataclass(slots=True)
class History:
    """What clients were told."""

    acknowledged: dict[int, list[str]] = field(default_factory=dict)  # by partition, in order
    in_doubt: Counter[str] = field(default_factory=Counter)  # attempts without a good answer
    consumed: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # while brokers failed
    found: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # at the end
    refusals: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        for partition, wanted in self.acknowledged.items():
            found = self.found[partition]
            values = [value for _, value in found]
            assert list(dict.fromkeys(values)) == wanted, f"partition {partition} has {values}, not {wanted}"
            for value, times in Counter(values).items():
                assert times <= 1 + self.in_doubt[value], f"{value} is there {times} times"
            offsets = [offset for offset, _ in found]
            assert offsets == sorted(set(offsets))
            assert self.consumed[partition] == found, f"a reader of partition {partition} skipped or repeated messages"


class Stage(DoorStage[GrpcServer, History]):
    def __init__(self, world: World) -> None:
        schema = self._schema = load_schema()
        super().__init__(world, "grpc", lambda world, number, plan: GrpcServer(world, number, plan, schema), History())
        self.is_over = False

    async def play(self) -> None:
        loop = self._world.loop
        producing = [loop.create_task(self._produce(number)) for number in range(PRODUCERS)]
        consuming = [loop.create_task(self._consume(number, self.history.consumed)) for number in range(PRODUCERS)]
        await self.disturb(5)
        for task in producing:
            await task
        self.is_over = True
        for task in consuming:
            await task
        for number in range(PRODUCERS):
            await self._consume(number, self.history.found)

    async def _call(self, server: GrpcServer, method: str, request: Any) -> Any | None:
        """None: nobody knows what became of the request, or that broker does not run."""
        if not server.serves or server.service is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                return await server.machine.run(_awaited(server.service.unary[method](request, CALL)))
        except (Crashed, TimeoutError):
            return None

    async def _leader(self, partition: int) -> GrpcServer:
        while True:
            server = self._chance.choice(self.servers)
            found = await self._call(server, "GetMetadata", self._schema.queue.MetadataRequest(topic=TOPIC))
            if found is not None and found.success:
                host = found.partitions[partition].broker_address.partition(":")[0]
                return next(one for one in self.servers if one.name == host)
            await asyncio.sleep(RETRY_S)

    async def _produce(self, partition: int) -> None:
        types, history = self._schema.queue, self.history
        leader = await self._leader(partition)
        history.acknowledged[partition] = []
        for count in range(BATCHES):
            values = [f"{partition}-{count}-{number}" for number in range(BATCH)]
            messages = [types.Message(value=value, topic=TOPIC, partition=partition) for value in values]
            request = types.ProduceMessagesRequest(messages=messages)
            while True:
                answer = await self._call(leader, "ProduceMessages", request)
                if answer is not None and answer.success:
                    break
                if answer is not None:
                    history.refusals[answer.error_message] += 1
                history.in_doubt.update(values)
                await asyncio.sleep(RETRY_S)
                leader = await self._leader(partition)
            history.acknowledged[partition] += values
            await asyncio.sleep(self._chance.uniform(0.0, 0.3))

    async def _consume(self, partition: int, into: dict[int, list[tuple[int, str]]]) -> None:
        """Read to the end, for as long as producers write; a client counts offsets itself."""
        found = into.setdefault(partition, [])
        leader = await self._leader(partition)
        while True:
            was_over = self.is_over
            start = found[-1][0] + 1 if found else 0
            request = self._schema.queue.ConsumeMessagesRequest(
                group_id="g", topic=TOPIC, partition=partition, start_offset=start, max_messages=7
            )
            answer = await self._call(leader, "ConsumeMessages", request)
            if answer is None or not answer.success:
                await asyncio.sleep(RETRY_S)
                leader = await self._leader(partition)
            elif answer.messages:
                found += [(one.offset, one.value) for one in answer.messages]
            elif was_over:
                return
            else:
                await asyncio.sleep(RETRY_S)


async def _awaited(work: Any) -> Any:
    return await work


def run(seed: int) -> tuple[History, str]:
    return run_stage(seed, Stage, steps_max=3_000_000)
