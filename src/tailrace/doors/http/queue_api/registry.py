"""Registers producers and consumers, and looks them up; `client.registrations` says what is written.

A door keeps what it has looked up; registrations never change.
"""

from collections import OrderedDict

from tailrace.client.registrations import REGISTRATIONS, Kind, Registration, encode_registration, read_registration
from tailrace.client.sequenced import record_at
from tailrace.client.topics import make_topic, partitions_of
from tailrace.client.transactions import begin_epoch
from tailrace.doors.upstream import Upstream
from tailrace.model.caller import Caller
from tailrace.model.limits import HTTP_REGISTRATIONS_KEPT_MAX
from tailrace.ports import Ports


class Registry:
    def __init__(self, upstream: Upstream, ports: Ports) -> None:
        self._upstream = upstream
        self._random = ports.random
        self._kept: OrderedDict[int, Registration] = OrderedDict()  # the one that was used last at the end

    async def register(self, kind: Kind, topic: str, partitions: int, caller: Caller) -> Registration:
        """Returns when the registration is durable."""
        cluster = self._upstream.cluster
        if await partitions_of(cluster, REGISTRATIONS.topic) is None:
            await make_topic(cluster, REGISTRATIONS.topic, 1, cleanup_policy="compact")
        sequencer = (await begin_epoch(cluster, None)).id
        value = encode_registration(kind, topic, partitions, sequencer)
        key = str(self._random.new_id())
        with self._upstream.producers.of(caller.principal) as producer:
            sent = await producer.send(REGISTRATIONS.topic, value, key=key.encode(), partition=REGISTRATIONS.partition)
            written = await sent
        found = read_registration(written.offset, value)
        self._keep(found)
        return found

    async def find(self, kind: Kind, number: int) -> Registration | None:
        """None if no producer, or consumer, has this id."""
        found = self._kept.get(number)
        if found is None:
            found = await self._look_up(number)
        if found is not None:
            self._keep(found)
        return found if found is not None and found.kind == kind else None

    async def _look_up(self, number: int) -> Registration | None:
        cluster = self._upstream.cluster
        if number < 1 or await partitions_of(cluster, REGISTRATIONS.topic) is None:
            return None
        record = await record_at(cluster, REGISTRATIONS, number - 1)
        if record is None or record.value is None:
            return None
        return read_registration(record.offset, record.value)

    def _keep(self, found: Registration) -> None:
        self._kept[found.id] = found
        self._kept.move_to_end(found.id)
        if len(self._kept) > HTTP_REGISTRATIONS_KEPT_MAX:
            self._kept.popitem(last=False)
