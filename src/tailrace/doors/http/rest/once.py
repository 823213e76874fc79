"""Requests with an idempotency key: written once, however often they are sent, and at whichever broker.

Everything that has to be remembered is in the cluster. Each key has a transactional id and a group of its own, whose
name is a hash of principal, topic and key. One transaction appends the records and commits offsets of that group: a
*receipt* that says where the records are, and has a fingerprint of the request. So there is a receipt exactly when the
records are committed, and it is as durable as they are.

1. Look for a receipt. If there is one: answer with it, or refuse if its fingerprint is another's.
2. Begin to use the transactional id. That ends what an earlier attempt has left open: it is aborted, or its commit is
   completed; an attempt that is still under way elsewhere is fenced, and its client gets an error.
3. Look again: an earlier attempt may have been committed meanwhile. Then nothing is written.
4. Append, store the receipt, commit.

Receipts expire as the offsets of idle groups do (`offsets.retention.minutes`). Readers must read committed records,
as those of this API do, or they see the records of aborted attempts.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tailrace.client.cluster import Cluster
from tailrace.client.faults import ClientError
from tailrace.client.offsets import noted_offsets
from tailrace.client.producer import Producer, ProducerOptions, Written
from tailrace.doors.http.rest.kinds import BUSY, KEY_IN_USE, KEY_REUSED
from tailrace.doors.http.rest.problems import Problem
from tailrace.doors.http.rest.records import NewRecord, stamped
from tailrace.model.ids import PartitionName
from tailrace.model.limits import REST_ONCE_MAX

if TYPE_CHECKING:
    from tailrace.doors.http.rest.service import Service

GROUP_PREFIX: Final = "tailrace.once."
NAME_CHARS: Final = 40  # of the hash: 160 bits
FINGERPRINT_CHARS: Final = 32
NOTE_MAX_CHARS: Final = 4_000  # brokers refuse longer ones (offset.metadata.max.bytes)
TRANSACTION_TIMEOUT_MS: Final = 60_000
UNKNOWN_OFFSET: Final = -1


async def write_once(
    service: "Service", principal: str, topic: str, records: Sequence[NewRecord], key: str
) -> tuple[list[Written], bool]:
    """Where the records are, and whether they were there before."""
    name = GROUP_PREFIX + hashlib.sha256("\0".join((principal, topic, key)).encode()).hexdigest()[:NAME_CHARS]
    fingerprint = hashlib.sha256(repr(records).encode()).hexdigest()[:FINGERPRINT_CHARS]
    with service.once_under_way(name, key):
        found = await _receipt(service.cluster, name, fingerprint, len(records), key, stable=False)
        if found is not None:
            return found, True
        cluster = service.cluster.with_own_connections(service.cluster.limits)
        options = ProducerOptions(transactional_id=name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
        producer = Producer(cluster, options)
        try:
            return await _write(producer, cluster, name, topic, records, key, fingerprint)
        finally:
            await producer.close()
            cluster.close()


async def _write(
    producer: Producer,
    cluster: Cluster,
    name: str,
    topic: str,
    records: Sequence[NewRecord],
    key: str,
    fingerprint: str,
) -> tuple[list[Written], bool]:
    await producer.begin()
    found = await _receipt(cluster, name, fingerprint, len(records), key, stable=True)
    if found is not None:
        return found, True
    try:
        waiting = await producer.send_all(topic, stamped(records, cluster.driver.wall_ms()))
        written = list(await asyncio.gather(*waiting))
        offsets = {one.partition: one.offset + 1 for one in written}
        await producer.commit_offsets(name, offsets, notes=_notes(written, fingerprint))
        await producer.commit()
    except BaseException:
        with suppress(ClientError, AssertionError):
            await producer.abort()
        raise
    return written, False


async def _receipt(
    cluster: Cluster, group: str, fingerprint: str, count: int, key: str, *, stable: bool
) -> list[Written] | None:
    """Where the records of this key are, if they are written."""
    noted = await noted_offsets(cluster, group, stable=stable)
    if not noted:
        return None
    found: dict[int, Written] = {}
    for partition, one in noted.items():
        begin, _, runs = one.note.partition(":")
        if begin != fingerprint:
            raise Problem(KEY_REUSED, f"the idempotency key {key[:50]!r} was used for other records before")
        found |= _read(runs, partition)
    unknown = Written(next(iter(noted)), UNKNOWN_OFFSET)
    return [found.get(number, unknown) for number in range(count)]


# A note: FINGERPRINT:FIRST+COUNT@OFFSET,… - records FIRST, FIRST + 1, … of the request are at OFFSET, OFFSET + 1, …


def _notes(written: Sequence[Written], fingerprint: str) -> dict[PartitionName, str]:
    runs: dict[PartitionName, list[list[int]]] = {}
    for number, one in enumerate(written):
        some = runs.setdefault(one.partition, [])
        if some and some[-1][0] + some[-1][1] == number and some[-1][2] + some[-1][1] == one.offset:
            some[-1][1] += 1
        else:
            some.append([number, 1, one.offset])
    found = {}
    for partition, some in runs.items():
        note = f"{fingerprint}:" + ",".join(f"{first}+{count}@{offset}" for first, count, offset in some)
        if len(note) > NOTE_MAX_CHARS:  # offsets that do not fit are unknown to those who ask again
            note = note[: note.rindex(",", 0, NOTE_MAX_CHARS)]
        found[partition] = note
    return found


def _read(runs: str, partition: PartitionName) -> dict[int, Written]:
    found = {}
    for run in runs.split(",") if runs else ():
        numbers, _, offset = run.partition("@")
        first, _, count = numbers.partition("+")
        for one in range(int(count)):
            found[int(first) + one] = Written(partition, int(offset) + one)
    return found


class OnceUnderWay:
    """The requests with idempotency keys that this door is serving: each key once, and not too many."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def begin(self, name: str, key: str) -> None:
        if name in self._names:
            raise Problem(KEY_IN_USE, f"a request with the idempotency key {key[:50]!r} is under way")
        if len(self._names) >= REST_ONCE_MAX:
            raise Problem(BUSY, f"{REST_ONCE_MAX} requests with idempotency keys are under way")
        self._names[name] = None

    def end(self, name: str) -> None:
        del self._names[name]
