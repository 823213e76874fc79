"""The offsets of `tailrace group reset-offsets`: a target, such as a time, becomes an existing offset per partition."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from tailrace.cli.client.own_client import sentence
from tailrace.cli.failure import Failed, Misused
from tailrace.client.admin import describe_topic
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.group_admin import all_committed_offsets
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.model.ids import PartitionName

FIRST_YEAR: Final = 1969  # 1970-01-01 UTC is still 1969 in western time zones
UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class OffsetChange(NamedTuple):
    """The committed offset of one partition, before and after the reset."""

    topic: str
    partition: int
    before: int | None
    after: int


class ResetTarget(NamedTuple):
    """The options that say where to reset to; exactly one must be given."""

    earliest: bool
    latest: bool
    offset: int | None
    time: str | None
    back: str | None  # a duration before now

    @property
    def options_given(self) -> int:
        return self.earliest + self.latest + sum(one is not None for one in (self.offset, self.time, self.back))


async def plan(
    cluster: Cluster, group: str, topics: Sequence[str], target: ResetTarget, now_ms: int
) -> list[OffsetChange]:
    """The changes that the reset would make; nothing is committed."""
    time_ms = _target_ms(target, now_ms)
    before = await all_committed_offsets(cluster, group)
    partitions = await _partitions_to_reset(cluster, before, topics)
    if not partitions:
        raise Failed(f"group {group} has no committed offsets: name the topics with --topic.")
    first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
    last = await offsets_at(cluster, dict.fromkeys(partitions, LATEST))
    found = {} if time_ms is None else await offsets_at(cluster, dict.fromkeys(partitions, time_ms))
    changes = []
    for one in partitions:
        wanted = target.offset
        if time_ms is not None:
            wanted = found[one] if found[one] >= 0 else last[one]  # no record is at or after that time
        elif wanted is None:
            wanted = first[one] if target.earliest else last[one]
        changes.append(OffsetChange(*one, before.get(one), min(max(wanted, first[one]), last[one])))
    return changes


async def _partitions_to_reset(
    cluster: Cluster, committed: Iterable[PartitionName], topics: Sequence[str]
) -> list[PartitionName]:
    """All partitions of the named topics; without names, those that have committed offsets."""
    if not topics:
        return list(committed)
    found: list[PartitionName] = []
    for name in dict.fromkeys(topics):
        try:
            topic = await describe_topic(cluster, name)
        except Refused as refused:
            what = Refused(refused.error, f"find topic {name}", refused.message)
            raise Failed(f"{sentence(what)}\n`tailrace topic list` lists the topics.") from None
        found += sorted(PartitionName(name, one.partition) for one in topic.partitions)
    return found


def _target_ms(target: ResetTarget, now_ms: int) -> int | None:
    """The time to look up; None if the target is no time. A time before 1970 becomes 0, because negative timestamps
    have a special meaning in ListOffsets: -1 is the end."""
    if target.options_given != 1:
        raise Misused(
            "reset to what? Give exactly one of --to-earliest, --to-latest, --to-offset, --to-time and --back."
        )
    if target.time is not None:
        return max(0, _timestamp_ms(target.time))
    if target.back is not None:
        amount = re.fullmatch(r"(\d{1,18})([smhd])", target.back)
        if amount is None:
            raise Misused(f"--back {target.back}: it must be a number and s, m, h or d, such as 90m.")
        return max(0, now_ms - int(amount[1]) * UNITS_MS[amount[2]])
    return None


def _timestamp_ms(text: str) -> int:
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.year < FIRST_YEAR:
            return 0  # before 1970 in any zone; `timestamp()` fails for the first years
        return int(parsed.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise Misused(f"--to-time {text}: it must be a time such as 2026-03-01T12:00:00.") from None
