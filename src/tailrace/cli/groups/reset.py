"""Where a group shall go on reading: one wish out of several, turned into offsets that exist."""

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

FIRST_YEAR: Final = 1969  # somewhere it still was, when time began
UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Step(NamedTuple):
    """One partition: how far it was read, and where reading shall go on."""

    topic: str
    partition: int
    before: int | None
    after: int


class Wish(NamedTuple):
    """Exactly one of these is given."""

    earliest: bool
    latest: bool
    offset: int | None
    time: str | None
    back: str | None  # how long ago

    @property
    def given(self) -> int:
        return self.earliest + self.latest + sum(one is not None for one in (self.offset, self.time, self.back))


def plan(
    client: "AdminClient", group: str, topics: Sequence[str], wish: Wish, now_ms: int, bootstrap: str
) -> list[Step]:
    """What would change; nothing does."""
    if wish.given != 1:
        raise Misused("say where to go on: one of --to-earliest, --to-latest, --to-offset, --to-time and --back.")
    read = committed(client, group, bootstrap)
    before = {(one.topic, one.partition): one.offset for one in read}
    places = _places(client, read, topics, bootstrap)
    if not places:
        raise Failed(f"group {group} has read nothing: name topics with --topic.")
    first = offsets_at(client, places, spec("earliest"), bootstrap)
    last = offsets_at(client, places, spec("latest"), bootstrap)
    moment = _time(wish, now_ms)
    found = {} if moment is None else offsets_at(client, places, moment, bootstrap)
    steps = []
    for place in ((one.topic, one.partition) for one in places):
        wanted = wish.offset
        if moment is not None:
            wanted = found[place] if found[place] >= 0 else last[place]  # nothing is so late
        elif wanted is None:
            wanted = first[place] if wish.earliest else last[place]
        steps.append(Step(*place, before.get(place), min(max(wanted, first[place]), last[place])))
    return steps


def _places(
    client: "AdminClient", read: "Sequence[TopicPartition]", topics: Sequence[str], bootstrap: str
) -> "list[TopicPartition]":
    """All partitions of the topics that are named; of none, those that were read."""
    from confluent_kafka import TopicPartition

    if not topics:
        return list(read)
    return [
        TopicPartition(topic, number)
        for topic in dict.fromkeys(topics)
        for number in _partitions(client, topic, bootstrap)
    ]


def _partitions(client: "AdminClient", topic: str, bootstrap: str) -> list[int]:
    """The numbers of a topic's partitions. An admin client's `list_topics` would make a topic that is not there."""
    from confluent_kafka import TopicCollection

    what = f"find topic {topic}"
    with asking(bootstrap, what):
        (future,) = client.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_TIMEOUT_S).values()
    try:
        found = answer(future, bootstrap, what)
    except Failed as failure:
        raise Failed(f"{failure}\n`tailrace topic list` shows what is there.") from None
    return sorted(one.id for one in found.partitions)


def _time(wish: Wish, now_ms: int) -> Any:
    """A time to look up; None where none was given. What is before 1970 is the beginning: ListOffsets takes a negative
    time for something else, -1 for the end."""
    if wish.time is not None:
        return spec("for_timestamp", max(0, _moment_ms(wish.time)))
    if wish.back is not None:
        amount = re.fullmatch(r"(\d{1,18})([smhd])", wish.back)
        if amount is None:
            raise Misused(f"--back {wish.back}: it must be a number and s, m, h or d, such as 90m.")
        return spec("for_timestamp", max(0, now_ms - int(amount[1]) * UNITS_MS[amount[2]]))
    return None


def _moment_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        if moment.year < FIRST_YEAR:
            return 0  # in any zone; and the first years have no local time that can be told
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise Misused(f"--to-time {text}: it must be a time such as 2026-03-01T12:00:00.") from None
