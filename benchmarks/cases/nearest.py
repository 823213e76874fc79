"""Reading from a follower in the consumer's rack, against reading the same messages from the leader (KIP-392).

The bytes that the follower sent prove that it was read from.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import ours, rdkafka
from benchmarks.brokers import Brokers
from benchmarks.cases import Start
from benchmarks.connection import Refused
from benchmarks.load import Measured
from benchmarks.outcomes import Outcome
from benchmarks.processes import Server, written_bytes
from tailrace.model.limits import KiB

ROUNDS: Final = 5
MESSAGES: Final = 600_000
TOPIC: Final = "read"


def nearest(_: Start, folder: Path) -> Iterator[Outcome]:
    with ours.cluster(folder, "never") as brokers:
        brokers.create_topic(TOPIC)
        measured(brokers, "produce", brokers.servers[0])
        leader = brokers.leader(TOPIC)
        follower = next(server for server in brokers.servers if server != leader)
        for server in (leader, follower):
            consumed(brokers, server)
        found: dict[int, list[Measured]] = {leader.pid: [], follower.pid: []}
        for number in range(ROUNDS):
            for server in (leader, follower) if number % 2 else (follower, leader):
                found[server.pid].append(consumed(brokers, server))
    yield Outcome(
        name="consume 1 KB messages from a follower beside the leader",
        fsync="never",
        acks="all",
        unit="MB/s",
        rounds=tuple(one.megabytes_per_second for one in found[follower.pid]),
        beside="one",
        beside_rounds=tuple(one.megabytes_per_second for one in found[leader.pid]),
    )


def consumed(brokers: Brokers, server: Server) -> Measured:
    """Read all messages from this broker, with a consumer in its rack."""
    before = written_bytes(server.pid)
    found = measured(brokers, "consume", server)
    if (sent := written_bytes(server.pid) - before) < found.bytes:
        raise Refused(f"{found.bytes} bytes were read, but the broker at port {server.port} sent at most {sent}")
    return found


def measured(brokers: Brokers, kind: rdkafka.Kind, server: Server) -> Measured:
    rack = ours.rack(brokers.servers.index(server) + 1)
    return rdkafka.measured(server, kind, TOPIC, MESSAGES, pids=brokers.pids, value_bytes=KiB, acks=-1, rack=rack)
