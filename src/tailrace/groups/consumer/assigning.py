"""`range`, and the list of those who share out.

`range` gives each reader of a topic a run of its partitions, in the order of the members' names: topics with the same
readers and as many partitions are cut at the same places, so that what belongs together stays together.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tailrace.groups.consumer.shares import Share, share
from tailrace.groups.consumer.sharing import Partitions, Wishes, uniform
from tailrace.model.ids import TopicPartition

Assignor = Callable[[Wishes, Partitions], dict[str, Share]]


def runs(wishes: Wishes, partitions: Partitions) -> dict[str, Share]:
    order = sorted(wishes, key=lambda member: _name(member, wishes[member].instance_id))
    found: dict[str, list[TopicPartition]] = {member: [] for member in wishes}
    for topic, count in sorted(partitions.items()):
        readers = [member for member in order if topic in wishes[member].topics]
        for at, member in enumerate(readers):
            begin, end = (count * place // len(readers) for place in (at, at + 1))
            found[member] += [TopicPartition(topic, one) for one in range(begin, end)]
    return {member: share(some) for member, some in found.items()}


def _name(member: str, instance_id: str | None) -> tuple[bool, str]:
    """A static member keeps its place in the order."""
    return instance_id is None, instance_id or member


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({"uniform": uniform, "range": runs})
