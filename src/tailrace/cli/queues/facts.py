"""What is known of a queue: its topic, its share group, how many messages wait, and its settings.

No request of Kafka's protocol returns how many messages are locked at the moment.
"""

from typing import Final, TypedDict

from tailrace.cli.failure import NotFound
from tailrace.cli.groups.facts import words
from tailrace.client.admin import describe_topic, group_settings, groups_with_settings
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused, Unsupported
from tailrace.client.group_admin import list_groups
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.share_admin import describe_share_group, share_group_offsets
from tailrace.model.ids import PartitionName

SOURCE_GROUP: Final = 8  # the source, in DescribeConfigs, of a setting that is set on the group itself
RESET: Final = "share.auto.offset.reset"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
SHARE: Final = "share"


class PartitionFacts(TypedDict):
    partition: int
    start: int | None  # everything before is processed; None: nothing was taken yet
    end: int
    waiting: int  # messages that are neither accepted nor given up, also those that are being processed


class QueueFacts(TypedDict):
    queue: str
    group: str
    state: str  # of the group; "unused" if nothing was taken yet
    members: list[str]
    waiting: int
    partitions: list[PartitionFacts]
    dead_letters: str | None  # the topic
    settings: dict[str, str]


class QueueStats(TypedDict):
    queue: str
    waiting: int
    workers: int
    dead: int | None  # messages in the dead letter topic; None: there is none


async def queue_names(cluster: Cluster) -> list[str]:
    """All share groups, and the groups that are set up to be some."""
    found = {one.group_id: None for one in await list_groups(cluster) if one.group_type.lower() == SHARE}
    try:
        for group in await groups_with_settings(cluster):
            if group not in found and RESET in await _settings(cluster, group):
                found[group] = None
    except Unsupported:  # before Kafka 4.1: only what is in use is listed
        pass
    return sorted(found)


async def queue_facts(cluster: Cluster, topic: str, group: str) -> QueueFacts:
    partitions = await partitions_of(cluster, topic)
    first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(partitions, LATEST))
    settings = await _settings(cluster, group)
    found = await describe_share_group(cluster, group)
    offsets = await share_group_offsets(cluster, group)
    begins_at_end = settings.get(RESET) != "earliest"
    facts: list[PartitionFacts] = []
    for one in partitions:
        start, lag = offsets.get(one, (None, None))
        if start is None:
            waiting = 0 if begins_at_end else end[one] - first[one]
        else:
            waiting = end[one] - max(start, first[one]) if lag is None else lag
        facts.append(PartitionFacts(partition=one.partition, start=start, end=end[one], waiting=waiting))
    return QueueFacts(
        queue=topic,
        group=group,
        state="unused" if found is None else words(found.state),
        members=[] if found is None else [one.id for one in found.members],
        waiting=sum(one["waiting"] for one in facts),
        partitions=facts,
        dead_letters=settings.get(DEAD_LETTERS) or None,
        settings=settings,
    )


async def queue_stats(cluster: Cluster, topic: str, group: str) -> QueueStats:
    facts = await queue_facts(cluster, topic, group)
    dead = None
    if facts["dead_letters"] is not None:
        letters = await partitions_of(cluster, facts["dead_letters"])
        first = await offsets_at(cluster, dict.fromkeys(letters, EARLIEST))
        end = await offsets_at(cluster, dict.fromkeys(letters, LATEST))
        dead = sum(end[one] - first[one] for one in letters)
    return QueueStats(queue=topic, waiting=facts["waiting"], workers=len(facts["members"]), dead=dead)


async def partitions_of(cluster: Cluster, topic: str) -> list[PartitionName]:
    try:
        found = await describe_topic(cluster, topic)
    except Refused as refused:
        raise NotFound(
            f"there is no queue {topic}: {refused.error.name}.\n`tailrace queue create {topic}` creates it."
        ) from None
    return sorted(PartitionName(topic, one.partition) for one in found.partitions)


async def _settings(cluster: Cluster, group: str) -> dict[str, str]:
    """The settings that are set on the group itself."""
    found = await group_settings(cluster, group)
    own = [one for one in found if one.config_source == SOURCE_GROUP]
    return {one.name: one.value or "" for one in sorted(own, key=lambda one: one.name)}
