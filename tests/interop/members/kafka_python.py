"""A member that uses kafka-python.

It polls for long: version 3.0 forgets its assignment when the time given to `poll` ends while it waits for SyncGroup.
And it polls again when no broker is there to connect to: `poll` then lets a refused connection through to its caller.
"""

import sys
from contextlib import suppress

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaConnectionError

from tests.interop.members import Assignment, say, set_at_sigterm

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def main(bootstrap: str, topic: str, group: str, strategy: str, instance: str) -> None:
    over = set_at_sigterm()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance or None,
        partition_assignment_strategy=[STRATEGIES[strategy]],
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
        auto_commit_interval_ms=100,
        auto_offset_reset="earliest",
    )
    assignment = Assignment()
    while not over.is_set():
        with suppress(KafkaConnectionError):
            for messages in consumer.poll(2000).values():
                for message in messages:
                    say("got", message.partition, message.offset)
        assignment.is_now(one.partition for one in consumer.assignment())
    consumer.close()


main(*sys.argv[1:])
