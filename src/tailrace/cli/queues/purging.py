"""`tailrace queue purge`: let a share group without members go on at the end of its topic."""

from tailrace.cli.failure import Failed
from tailrace.cli.queues.facts import partitions_of, queue_facts
from tailrace.cli.queues.message_commands import join
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.offsets import LATEST, offsets_at
from tailrace.client.share_admin import alter_share_group_offsets, describe_share_group
from tailrace.client.share_consumer import ShareConsumer
from tailrace.wire.errors import Error


async def purge_waiting(cluster: Cluster, topic: str, group: str, *, execute: bool) -> int:
    """How many messages wait, or waited."""
    waiting = (await queue_facts(cluster, topic, group))["waiting"]
    if execute:
        if await describe_share_group(cluster, group) is None:
            await _found(cluster, topic, group)
        ends = await offsets_at(cluster, dict.fromkeys(await partitions_of(cluster, topic), LATEST))
        try:
            await alter_share_group_offsets(cluster, group, ends)
        except Refused as refused:
            if refused.error is not Error.NON_EMPTY_GROUP:
                raise
            raise Failed(
                f"{topic} has workers: messages can only be skipped while it has none.\n"
                f"Stop them first: `tailrace queue describe {topic}` counts them."
            ) from None
    return waiting


async def _found(cluster: Cluster, topic: str, group: str) -> None:
    """A group without members has offsets only once it had a member."""
    async with ShareConsumer(cluster, group, [topic]) as consumer:
        await join(consumer, topic)
