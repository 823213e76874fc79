"""What must hold soon after all faults have ended: each partition has one leader, and all replicas are the same.

`obstacle` describes the first condition that does not hold yet. When there is none left, every log on every disk is
compared with the committed history, from its start to its end.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tailrace.broker.node import Node
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.image import PartitionPlace
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.raft.replica import Role
from tailrace.testing.scenarios.cluster.invariants.observer import ClusterObserver, is_compacted, partitions_of
from tailrace.testing.scenarios.cluster.server import Server

METADATA_VOTERS_MAX: Final = 3

Copies = list[tuple[Server, Partition]]


class Convergence:
    def __init__(self, servers: Sequence[Server], observer: ClusterObserver) -> None:
        self._servers = servers
        self._observer = observer

    def obstacle(self) -> str | None:
        return next(self._obstacles(), None)

    def _obstacles(self) -> Iterator[str]:
        for server in self._servers:
            if not server.serves:
                yield f"{server.name} does not serve{server.refusal and f'; its last start failed: {server.refusal}'}"
        yield from self._in_metadata()
        for copies in self._partitions():
            yield from _in_partition(copies)
            if unsettled := self._observer.claims.open(copies[0][1].key):
                yield f"{copies[0][1].name}: clients were told of {unsettled} batches above its end"

    def _in_metadata(self) -> Iterator[str]:
        nodes = [server.node for server in self._servers if server.node is not None]
        images = [node.hosted.image for node in nodes]
        if any(image != images[0] for image in images):
            yield "the metadata images differ"
        count = len(nodes[0].metadata.replica.voters)
        due = 1 if len(self._servers) < METADATA_VOTERS_MAX else METADATA_VOTERS_MAX
        if count != due:
            yield f"the metadata partition has {count} voters, not {due}"
        for topic in images[0].topics.values():
            for number, place in enumerate(topic.partitions):
                yield from _in_place(topic.name, number, place, nodes)
                if topic.name in INTERNAL_TOPICS and len(place.replicas) < due:
                    yield f"{topic.name}-{number} has replicas only on {place.replicas}"

    def _partitions(self) -> list[Copies]:
        found: dict[object, Copies] = {}
        for server in self._servers:
            for partition in partitions_of(server):
                found.setdefault(partition.key, []).append((server, partition))
        return list(found.values())

    def compare(self) -> None:
        """Compare every log on every disk from its start; replicas with flipped bits must be repaired by now."""
        self._observer.damaged.clear()
        for copies in self._partitions():
            for server, partition in copies:
                self._observer.compare_whole_log(server, partition)
            self._observer.claims.check_all_settled(copies[0][1].key)


def _in_place(topic: str, number: int, place: PartitionPlace, nodes: Sequence[Node]) -> Iterator[str]:
    holders = [node for node in nodes if node.broker_id in place.replicas]
    copies = [one for node in holders for one in node.hosted.of_topic(topic) if one.key.partition == number]
    if len(copies) < len(holders):
        yield f"{topic}-{number} is not open on all of {place.replicas}"
    for voters in ([voter.broker for voter in one.replica.voters] for one in copies):
        if sorted(voters) != sorted(place.replicas):
            yield f"{topic}-{number}: the voters are {voters}, but its replicas are on {place.replicas}"


def _in_partition(copies: Copies) -> Iterator[str]:
    name = copies[0][1].name
    leading = [server.name for server, one in copies if one.replica.role is Role.LEADER]
    if len(leading) != 1:
        yield f"{name} is led by {leading}"
    for what, values in (
        ("epochs", [one.replica.epoch for _, one in copies]),
        ("ends", [one.log.end for _, one in copies]),
        ("high watermarks", [one.replica.high_watermark for _, one in copies]),
    ):
        if any(value != values[0] for value in values):
            yield f"{name}: {what} {values}"
    if copies[0][1].log.end != copies[0][1].replica.high_watermark:
        yield f"{name} ends at {copies[0][1].log.end}, but its high watermark is {copies[0][1].replica.high_watermark}"
    if is_compacted(copies[0][1]) and any(one.last_stable != one.high_watermark for _, one in copies):
        yield f"{name}: last stable offsets {[one.last_stable for _, one in copies]}: a transaction is open"
    if any(not one.replica.may_vote for _, one in copies):
        yield f"{name}: not all replicas may vote"


def describe_replicas(servers: Sequence[Server]) -> Iterator[str]:
    """One line per server and per replica: the details of a failure to converge."""
    for server in servers:
        state = "serves" if server.serves else "is starting" if server.runs else "is down"
        yield f"{server.name} {state}{' (paused)' if server.paused else ''}"
        for one in partitions_of(server):
            replica, log = one.replica, one.log
            leader = None if replica.leader is None else replica.leader.broker
            yield (
                f"  {one.name} {replica.role.value} in epoch {replica.epoch}, leader {leader}, "
                f"voters {[voter.broker for voter in replica.voters]}, offsets {log.start} to {log.end}, "
                f"durable {log.durable}, high watermark {replica.high_watermark}, last epoch {log.epochs.last}"
                f"{'' if replica.may_vote else ', may not vote'}{f', {one.offline}' if one.offline else ''}"
            )
