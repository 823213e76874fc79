"""A member that uses aiokafka."""

import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.interop.members import Assignment, say

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


async def main(bootstrap: str, topic: str, group: str, strategy: str, instance: str) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance or None,
        partition_assignment_strategy=(STRATEGIES[strategy],),
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
        auto_commit_interval_ms=100,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    assignment = Assignment()
    while not over.is_set():
        for messages in (await consumer.getmany(timeout_ms=50)).values():
            for message in messages:
                say("got", message.partition, message.offset)
        assignment.is_now(one.partition for one in consumer.assignment())
    await consumer.stop()


asyncio.run(main(*sys.argv[1:]))
