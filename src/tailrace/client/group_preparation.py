"""Prepares a share group to be taken from: its settings, and the initialization of its partitions.

A group gets its settings before its first member, since `share.auto.offset.reset` counts at that moment. Brokers
initialize the partitions that members subscribe to; a client may fetch without being a member. So a member joins once,
until all partitions of the topic are assigned, and leaves: thousands of groups cost no heartbeats. A topic that gets
more partitions, or is deleted and made again, is prepared again.

A group that has `share.auto.offset.reset` set is left as it is: an administrator may have changed its other settings.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from tailrace.client.admin import GROUP, change_group_settings, group_settings
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import Refused, check
from tailrace.client.group_membership import Membership
from tailrace.client.groups.member import MemberOptions, Partitions
from tailrace.client.groups.share_member import ShareMember
from tailrace.client.share_admin import describe_share_group
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, show_id
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked

PREPARED_MAX: Final = 100_000  # groups and topics that are remembered
PREPARING_MAX: Final = 16  # at a time
MEMBER_WAIT_S: Final = 0.25  # after which a member looks what the others are assigned

OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION: Final = "share.isolation.level"
LOCKS: Final = "share.partition.max.record.locks"
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
ESSENTIAL: Final = {OFFSET_RESET: "earliest", ISOLATION: "read_committed"}
# What to try, one after the other: Apache Kafka has other bounds. If it refuses all, its default holds.
WISHES: Final[Mapping[str, tuple[str, ...]]] = {LOCKS: ("1",), DELIVERY_LIMIT: ("0", "25", "10")}
REFUSALS: Final = (Error.INVALID_CONFIG, Error.INVALID_REQUEST)


@frozen
class Prepared:
    topic_id: Id
    partitions: int
    one_lock: bool  # of each partition one message is locked at a time


class GroupPreparation:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._coordination = cluster.with_own_connections(cluster.limits)
        self._prepared: OrderedDict[tuple[str, str], Prepared] = OrderedDict()
        self._room = asyncio.Semaphore(PREPARING_MAX)

    def close(self) -> None:
        self._coordination.close()

    async def ready(self, group: str, topic: str, *, sets_up: bool) -> Prepared:
        """Return when the group can be taken from. `sets_up`: let it deliver one message of a partition at a time, in
        order, from the first one on; else its settings are left as they are."""
        known = self._prepared.get((group, topic))
        if known is not None and self._is_current(topic, known):
            self._prepared.move_to_end((group, topic))
            return known
        return await self._cluster.driver.share(
            ("prepare", self, group, topic, sets_up), lambda: self._prepare(group, topic, sets_up)
        )

    def forget(self, group: str, topic: str) -> None:
        """A broker does not know the group's state of a partition."""
        self._prepared.pop((group, topic), None)

    def _is_current(self, topic: str, known: Prepared) -> bool:
        now = self._cluster.map
        return known.topic_id == now.topic_id(topic) and known.partitions >= now.partition_counts.get(topic, 0)

    async def _prepare(self, group: str, topic: str, sets_up: bool) -> Prepared:
        async with self._room:
            one_lock = sets_up and await self._set_up(group)
            if sets_up and not one_lock:  # leaders that may lock one message only are Tailrace's, and wait themselves
                await self._until_leaders_know(group, topic)
            partitions = await self._initialize(group, topic)
        found = Prepared(topic_id=self._cluster.map.topic_id(topic), partitions=len(partitions), one_lock=one_lock)
        self._prepared[group, topic] = found
        if len(self._prepared) > PREPARED_MAX:
            self._prepared.popitem(last=False)
        return found

    # Settings

    async def _set_up(self, group: str) -> bool:
        """Whether the group locks one message of a partition at a time."""
        values = {one.name: one.value for one in await group_settings(self._coordination, group)}
        if values.get(OFFSET_RESET) == ESSENTIAL[OFFSET_RESET]:
            return values.get(LOCKS) == "1"
        wanted = {name: wishes[0] for name, wishes in WISHES.items()}
        with suppress(Refused):
            await change_group_settings(self._coordination, group, {**wanted, **ESSENTIAL})
            return True
        got = {name: await self._wish(group, name, wishes) for name, wishes in WISHES.items()}
        await change_group_settings(self._coordination, group, ESSENTIAL)  # the last: it says that the others are set
        return got[LOCKS] == "1"

    async def _wish(self, group: str, name: str, wishes: tuple[str, ...]) -> str | None:
        for value in wishes:
            try:
                await change_group_settings(self._coordination, group, {name: value})
            except Refused as refused:
                if refused.error not in REFUSALS:
                    raise
            else:
                return value
        return None

    async def _until_leaders_know(self, group: str, topic: str) -> None:
        """Return when the leaders of all partitions have the settings: each of Apache Kafka's begins where its own
        metadata says, and may lag behind the broker that answered."""
        cluster = self._coordination
        what = f"let the leaders of {topic} know the settings of group {group}"
        request = DescribeConfigsRequest(resources=(ResourceAsked(resource_type=GROUP, resource_name=group),))

        async def ask() -> None:
            for found in (await cluster.refresh([topic])).topics:
                check(found.error_code, f"find topic {topic}")
            for address in await cluster.by_leader(cluster.map.partitions(topic)):
                (answer,) = (await cluster.call(address, request)).results
                check(answer.error_code, what, answer.error_message)
                if not any(one.name == OFFSET_RESET and one.value == "earliest" for one in answer.configs):
                    raise Retry(f"the metadata of {address} does not have them yet")

        await cluster.retry(what, ask)

    # Partitions

    async def _initialize(self, group: str, topic: str) -> Partitions:
        """Be a member until all partitions are assigned to this one or to others."""
        driver, cluster = self._cluster.driver, self._cluster
        for found in (await cluster.refresh([topic])).topics:
            check(found.error_code, f"find topic {topic}")
        options = MemberOptions(group=group, topics=(topic,))
        changed = asyncio.Event()
        membership = Membership(
            self._coordination,
            options,
            lambda: ShareMember(options, show_id(driver.new_id()), driver.now()),
            topics_max_age_s=cluster.limits.metadata_max_age_s,
            on_lost=lambda _: changed.set(),
            on_event=changed.set,
        )
        try:
            with membership.polling():
                async with asyncio.timeout(cluster.limits.retry_s):
                    while not await self._is_covered(group, topic, membership):
                        changed.clear()
                        with suppress(TimeoutError):
                            async with asyncio.timeout(MEMBER_WAIT_S):
                                await changed.wait()
        except TimeoutError:
            why = f"share group {group} is not assigned all partitions of {topic} within {cluster.limits.retry_s:g} s"
            raise Retry(why) from None
        finally:
            await membership.leave()
        return tuple(cluster.map.partitions(topic))

    async def _is_covered(self, group: str, topic: str, membership: Membership) -> bool:
        membership.check()
        wanted = set(self._cluster.map.partitions(topic))
        if not wanted or not membership.assignment:
            return False
        if wanted <= set(membership.assignment):
            return True
        described = await describe_share_group(self._coordination, group)
        others = () if described is None else (place for one in described.members for place in one.partitions)
        return wanted <= {*membership.assignment, *others}
