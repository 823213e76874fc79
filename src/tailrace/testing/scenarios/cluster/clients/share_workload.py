"""The share groups of a run and their members, what they were told, and the checks at the end."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tailrace.model.ids import Id
from tailrace.queues.state import ShareKey
from tailrace.testing.scenarios.cluster.clients.coordinator_client import GROUP_TYPE, CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.share_group import DEAD_LETTER_TOPIC, GROUPS, ShareGroup
from tailrace.testing.scenarios.cluster.clients.share_member import ShareGroupMember
from tailrace.testing.scenarios.cluster.clients.share_opening import ShareOpening
from tailrace.testing.scenarios.cluster.clients.share_tenures import ShareTenures
from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.invariants.share_history import ShareHistory
from tailrace.testing.scenarios.cluster.invariants.share_logs import (
    LogRecords,
    check_accounted,
    check_letters,
    check_state_log,
    dead_letters,
    log_of,
)
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation.network import Network
from tailrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    GroupToDescribe,
)

MEMBERS: Final = 3  # of each group
DESCRIBE_VERSION: Final = 1
CHECK_SECONDS: Final = 0.2


class LagWatcher:
    """An admin client that waits until a drained group has no lag."""

    def __init__(self, router: Router, group: str, is_drained: Callable[[], bool]) -> None:
        self.name = router.name
        self._coordinator = CoordinatorClient(router, group, GROUP_TYPE)
        self._group = group
        self._is_drained = is_drained
        self.lag: dict[int, int] = {}  # by partition
        self.stopping = False
        self.done = False

    async def run(self) -> None:
        while not self.done:
            if self.stopping and self._is_drained():
                await self._describe()
                self.done = bool(self.lag) and not any(self.lag.values())
            await asyncio.sleep(CHECK_SECONDS)

    def is_done(self) -> bool:
        return self.done

    async def _describe(self) -> None:
        request = DescribeShareGroupOffsetsRequest(groups=(GroupToDescribe(group_id=self._group, topics=None),))
        response: DescribeShareGroupOffsetsResponse | None = await self._coordinator.call(request, DESCRIBE_VERSION)
        if response is None:
            return
        group = response.groups[0]
        self._coordinator.check_error(group.error_code)
        if group.error_code == 0:
            self.lag = {one.partition: one.lag for topic in group.topics for one in topic.partitions}


class ShareWorkload:
    def __init__(
        self,
        router: Callable[[str], Router],
        network: Network,
        names: Sequence[str],
        servers: Sequence[Server],
        tenures: ShareTenures,
        topic: str,
        partitions: int,
        writers_stopped: Callable[[], bool],
    ) -> None:
        """`names` are those of the groups that take part."""
        self._servers = servers
        self._tenures = tenures
        self._topic = topic
        self._partitions = partitions
        self.groups = [one for one in GROUPS if one.name in names]
        self._histories = {
            one.name: ShareHistory(one.name, one.rules, partial(tenures.number_of, one.name)) for one in self.groups
        }
        self.opening = ShareOpening(router("opener"), network, servers, self.groups, topic)
        self.members: list[ShareGroupMember] = []
        self.watchers: list[LagWatcher] = []
        for number, group in enumerate(self.groups):
            watcher = LagWatcher(router(f"l{number}"), group.name, self._drained(group, writers_stopped))
            self.watchers.append(watcher)
            for other in range(MEMBERS):
                self.members.append(
                    ShareGroupMember(
                        router(f"s{number}{other}"),
                        group,
                        self._histories[group.name],
                        tenures,
                        topic,
                        partitions,
                        self.opening.is_open,
                        writers_stopped,
                        watcher.is_done,
                    )
                )

    def _drained(self, group: ShareGroup, writers_stopped: Callable[[], bool]) -> Callable[[], bool]:
        return lambda: writers_stopped() and not self._unfinished(group)

    def _unfinished(self, group: ShareGroup) -> list[str]:
        topic_id = self._topic_ids().get(self._topic)
        keys = [] if topic_id is None else [ShareKey(group.name, topic_id, one) for one in range(self._partitions)]
        return [self._tenures.progress(key) for key in keys if not self._tenures.is_finished(key)]

    def _topic_ids(self) -> Mapping[str, Id]:
        for server in self._servers:
            if server.node is not None:
                return {name: topic.id for name, topic in server.node.hosted.image.topics.items()}
        return {}

    @property
    def busy(self) -> list[str]:
        """The members that have not finished yet, and what is left to do."""
        names = [one.name for one in self.members if one.stopping and not one.done]
        left = [what for group in self.groups for what in self._unfinished(group)] if names else []
        lags = [f"{one.name}: lag {one.lag}" for one in self.watchers if one.stopping and not one.done]
        return names + left + lags

    def check(self) -> None:
        """Compare what members were told with the logs, after the cluster has converged."""
        check_state_log(self._servers)
        letters = dead_letters(self._servers, DEAD_LETTER_TOPIC, self._topic_ids())
        for number in range(self._partitions):
            log = LogRecords(*log_of(self._servers, f"{self._topic}-{number}"))
            for group in self.groups:
                history = self._histories[group.name]
                if group.rules.dead_letters:
                    check_letters(history, log, letters)
                check_accounted(history, log, letters, committed=group.committed)

    def count(self, coverage: Coverage) -> None:
        histories = self._histories.values()
        coverage.share_deliveries = sum(one.delivered_records for one in histories)
        coverage.share_records_finished = sum(one.finished_records for one in histories)
        coverage.share_crashes = sum(member.crashes for member in self.members)
        coverage.share_tenures = self._tenures.count
