"""A member that uses our own client, `tailrace.client`."""

import asyncio
import signal
import sys

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports
from tests.interop.members import Assignment, say


def options_of(strategy: str, instance: str) -> GroupOptions:
    return GroupOptions(
        protocol="consumer" if strategy == "consumer" else "classic",
        assignors=(strategy,),
        instance_id=instance or None,
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
        commit_interval_s=0.1,
    )


async def main(bootstrap: str, topic: str, group: str, strategy: str, instance: str) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    ports = system_ports()
    cluster = Cluster(AsyncioDriver(ports.net, ports.clock, ports.random), parse_addresses(bootstrap))
    assignment = Assignment()
    async with GroupConsumer(cluster, group, [topic], options_of(strategy, instance)) as consumer:
        while not over.is_set():
            for one in await consumer.poll(timeout_s=0.05):
                say("got", one.partition.partition, one.offset)
            assignment.is_now(one.partition for one in consumer.assignment)
        await consumer.commit()
    cluster.close()


asyncio.run(main(*sys.argv[1:]))
