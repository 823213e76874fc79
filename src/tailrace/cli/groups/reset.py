"""The offsets of `tailrace group reset-offsets`: a target, such as a time, becomes an existing offset per partition."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, answer, asking
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.groups.facts import committed, offsets_at, spec

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

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


def plan(
    client: "AdminClient", group: str, topics: Sequence[str], target: ResetTarget, now_ms: int, bootstrap: str
) -> list[OffsetChange]:
    """The changes that the reset would make; nothing is committed."""
    if target.options_given != 1:
        raise Misused(
            "reset to what? Give exactly one of --to-earliest, --to-latest, --to-offset, --to-time and --back."
        )
    current = committed(client, group, bootstrap)
    before = {(one.topic, one.partition): one.offset for one in current}
    partitions = _partitions_to_reset(client, current, topics, bootstrap)
    if not partitions:
        raise Failed(f"group {group} has no committed offsets: name the topics with --topic.")
    first = offsets_at(client, partitions, spec("earliest"), bootstrap)
    last = offsets_at(client, partitions, spec("latest"), bootstrap)
    time_spec = _time_spec(target, now_ms)
    found = {} if time_spec is None else offsets_at(client, partitions, time_spec, bootstrap)
    changes = []
    for key in ((one.topic, one.partition) for one in partitions):
        wanted = target.offset
        if time_spec is not None:
            wanted = found[key] if found[key] >= 0 else last[key]  # no record is at or after that time
        elif wanted is None:
            wanted = first[key] if target.earliest else last[key]
        changes.append(OffsetChange(*key, before.get(key), min(max(wanted, first[key]), last[key])))
    return changes


def _partitions_to_reset(
    client: "AdminClient", current: "Sequence[TopicPartition]", topics: Sequence[str], bootstrap: str
) -> "list[TopicPartition]":
    """All partitions of the named topics; without names, those that have committed offsets."""
    from confluent_kafka import TopicPartition

    if not topics:
        return list(current)
    return [
        TopicPartition(topic, number)
        for topic in dict.fromkeys(topics)
        for number in _partitions(client, topic, bootstrap)
    ]


def _partitions(client: "AdminClient", topic: str, bootstrap: str) -> list[int]:
    """The partition numbers of a topic. Not by an admin client's `list_topics`, which could create the topic."""
    from confluent_kafka import TopicCollection

    what = f"find topic {topic}"
    with asking(bootstrap, what):
        (future,) = client.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_TIMEOUT_S).values()
    try:
        found = answer(future, bootstrap, what)
    except Failed as failure:
        raise Failed(f"{failure}\n`tailrace topic list` lists the topics.") from None
    return sorted(one.id for one in found.partitions)


def _time_spec(target: ResetTarget, now_ms: int) -> Any:
    """The time to look up; None if the target is no time. A time before 1970 becomes 0, because negative timestamps
    have a special meaning in ListOffsets: -1 is the end."""
    if target.time is not None:
        return spec("for_timestamp", max(0, _timestamp_ms(target.time)))
    if target.back is not None:
        amount = re.fullmatch(r"(\d{1,18})([smhd])", target.back)
        if amount is None:
            raise Misused(f"--back {target.back}: it must be a number and s, m, h or d, such as 90m.")
        return spec("for_timestamp", max(0, now_ms - int(amount[1]) * UNITS_MS[amount[2]]))
    return None


def _timestamp_ms(text: str) -> int:
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.year < FIRST_YEAR:
            return 0  # before 1970 in any zone; `timestamp()` fails for the first years
        return int(parsed.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise Misused(f"--to-time {text}: it must be a time such as 2026-03-01T12:00:00.") from None
