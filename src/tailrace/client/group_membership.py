"""Runs a member of a group on an event loop: sends its requests, and keeps its events until the application takes them.

A task of its own sends heartbeats, so a member stays in its group while the application is busy with records. It must
come back for more within the rebalance timeout; else the member leaves, others get its partitions, and it joins again
when the application comes back. "lost" is handled at once; other events wait in `events`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Final

from tailrace.client.cluster import GROUP, Cluster, Retry
from tailrace.client.cluster_map import CoordinatorKey
from tailrace.client.faults import ClientError, Refused
from tailrace.client.groups.member import Event, Events, GroupMember, Identity, MemberOptions, Partitions, TopicSeen
from tailrace.wire.errors import Error
from tailrace.wire.messages.join_group import JoinGroupRequest
from tailrace.wire.messages.sync_group import SyncGroupRequest

TOPICS_RETRY_S: Final = 0.5  # before metadata that a member waits for is asked for again
TOPICS_MISSING_S: Final = 2.0  # the same, when a topic does not exist
NOT_COORDINATING: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)


class Membership:
    def __init__(
        self,
        cluster: Cluster,
        options: MemberOptions,
        new_member: Callable[[], GroupMember],
        *,
        topics_max_age_s: float,
        on_lost: Callable[[Partitions], None],
        on_event: Callable[[], None],
    ) -> None:
        """`cluster`: with connections that nobody else uses, since the coordinator holds some requests for long."""
        self._cluster = cluster
        self._driver = cluster.driver
        self._options = options
        self._new_member = new_member
        self._topics_max_age_s = topics_max_age_s
        self._on_lost = on_lost
        self._on_event = on_event
        self._member = new_member()
        self.events: deque[Event] = deque()  # "assigned" and "revoked", in order
        self._wake = asyncio.Event()
        self._answered = asyncio.Event()  # set after each response
        self._topics_at = self._driver.now()  # when to ask for metadata again
        self._polled_at = self._driver.now()
        self._is_polling = False
        self._failure: ClientError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def assignment(self) -> Partitions:
        return self._member.assignment

    @property
    def identity(self) -> Identity | None:
        return self._member.identity

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def check(self) -> None:
        """Raise why this is no longer a member, if that cannot be mended."""
        failure = self._failure or self._member.failure
        if failure is not None:
            raise failure
        if self._task is not None and self._task.done():
            self._task.result()

    # What the application does

    @contextmanager
    def polling(self) -> Iterator[None]:
        """The application is in `poll`."""
        self.start()
        self._is_polling = True
        self._wake.set()
        try:
            yield
        finally:
            self._is_polling = False
            self._polled_at = self._driver.now()

    def released(self, event: Event) -> None:
        self._take(self._member.released(event, self._driver.now()))
        self._wake.set()

    async def identity_after(self, identity: Identity, within_s: float) -> Identity | None:
        """The member's identity once it differs from this one; None if that does not happen in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.identity == identity:
                    self._answered.clear()
                    await self._answered.wait()
        return None if self.identity == identity else self.identity

    async def leave(self) -> None:
        """Leave the group, if its coordinator can be reached; else the member's session expires there."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self._cluster.disconnect()  # a JoinGroup may be held there, which others would have to wait for
        await self._leave()

    async def _leave(self) -> None:
        request, self.events = self._member.leave(), deque()
        if request is not None:
            with suppress(ClientError, Retry):
                await self._cluster.call_coordinator(GROUP, self._options.group, request)

    # The task

    async def _run(self) -> None:
        try:
            while self._member.failure is None:
                await self._step(self._driver.now())
        except ClientError as failure:
            self._failure = failure
            self._lose(self._member.assignment)
        self._on_event()  # the application learns of it now, not when its poll ends

    async def _step(self, now: float) -> None:
        if self._is_deserted(now):
            await self._stay_out()
        elif now >= self._topics_at:
            await self._ask_for_topics()
        elif (request := self._member.next_request(now)) is not None:
            needed_topics = self._member.needs_topics
            self._take(await self._send(request))
            if self._member.needs_topics and not needed_topics:
                self._topics_at = now
            self._answered.set()
        else:
            deserted_at = inf if self._is_polling else self._polled_at + self._options.rebalance_timeout_ms / 1000
            await self._wait(min(self._member.wake_at, self._topics_at, deserted_at) - now)

    async def _wait(self, seconds: float) -> None:
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _send(self, request: object) -> Events:
        group, within_s = self._options.group, None
        if isinstance(request, JoinGroupRequest | SyncGroupRequest):  # they wait for the other members
            within_s = self._options.rebalance_timeout_ms / 1000 + self._cluster.limits.request_s
        try:
            response = await self._cluster.call_coordinator(GROUP, group, request, within_s)
        except Retry:
            return self._member.unanswered(self._driver.now())
        except Refused as refused:  # the coordinator could not be found
            if not refused.retriable:
                raise
            return self._member.unanswered(self._driver.now())
        if response.error_code in NOT_COORDINATING:
            self._cluster.map.forget_coordinator(CoordinatorKey(GROUP, group))
        return self._member.answered(response, self._driver.now())

    def _take(self, events: Events) -> None:
        for event in events:
            if event.kind == "lost":
                self._lose(event.partitions)
            else:
                self.events.append(event)
        if events:
            self._on_event()

    def _lose(self, partitions: Partitions) -> None:
        self.events.clear()  # they were about partitions that are lost now
        self._on_lost(partitions)

    # Metadata

    async def _ask_for_topics(self) -> None:
        topics = self._member.topics
        try:
            if topics:
                await self._cluster.refresh(topics)
        except Retry:
            self._topics_at = self._driver.now() + TOPICS_RETRY_S
            return
        known, now = self._cluster.map, self._driver.now()
        seen = {name: TopicSeen(known.topic_id(name), len(known.partitions(name))) for name in topics}
        self._take(self._member.learnt({name: topic for name, topic in seen.items() if topic.partitions}, now))
        if self._member.needs_topics:
            self._topics_at = now + TOPICS_RETRY_S
        elif not all(topic.partitions for topic in seen.values()):
            self._topics_at = now + TOPICS_MISSING_S
        else:
            self._topics_at = now + self._topics_max_age_s

    # An application that does not come back

    def _is_deserted(self, now: float) -> bool:
        return not self._is_polling and now - self._polled_at >= self._options.rebalance_timeout_ms / 1000

    async def _stay_out(self) -> None:
        """Leave, and join again as a new member when the application polls."""
        lost = self._member.assignment
        await self._leave()
        self._lose(lost)
        while not self._is_polling:
            self._wake.clear()
            await self._wake.wait()
        self._member = self._new_member()
