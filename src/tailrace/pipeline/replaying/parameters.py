"""The parameters of a replay: which records of a history are written where, and the replay's id.

All of them are plain values, so that they can be checked before Spark starts, and be sent to Spark's tasks.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.kafka.cluster import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayParameters:
    """Which records of a partition to replay, and how."""

    replay_id: str
    access: Access
    history: str
    into: str
    first: int = 0  # offsets, `end` exclusive
    end: int = 2**63 - 1
    earliest_ms: int = -(2**63)  # timestamps, `latest_ms` exclusive
    latest_ms: int = 2**63 - 1
    key: str | None = None
    keep_partition: bool = False
    keep_timestamp: bool = False
    per_second: float = 0.0  # records per second; 0: no limit


def demand_compatible(where: str, per_second: float) -> None:
    """`PipelineFailed` for options that exclude each other."""
    if where and per_second:
        raise PipelineFailed(
            "a replay by a condition has no rate: it writes all records in one batch, as a whole or not at all. "
            "Leave out the condition or the rate"
        )


def ranges_of(snapshot: Snapshot, topic: str) -> dict[TopicPartition, list[ArchivedRange]]:
    """The archived ranges of a topic, by partition, in offset order."""
    found: dict[TopicPartition, list[ArchivedRange]] = {}
    for one in sorted(snapshot.ranges, key=lambda one: (one.of, one.start)):
        if one.topic == topic:
            found.setdefault(one.of, []).append(one)
    if not found:
        has = ", ".join(sorted({one.topic: None for one in snapshot.ranges})) or "nothing"
        raise PipelineFailed(f"the history has no topic {topic}; it has {has}")
    return found


def with_bound(parameters: ReplayParameters, text: str, *, is_start: bool) -> ReplayParameters:
    """Return `parameters` with the start or end given by `text`, which is an offset or a time."""
    if not text:
        return parameters
    if text.isdecimal():
        return replace(parameters, first=int(text)) if is_start else replace(parameters, end=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PipelineFailed(f"{text!r} is neither an offset nor a time such as 2026-11-16T08:00") from None
    ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return replace(parameters, earliest_ms=ms) if is_start else replace(parameters, latest_ms=ms)


def default_id(history_id: str, topic: str, where: str, parameters: ReplayParameters) -> str:
    """An id that is the same for every run of the same replay of the same history, and unique to it.

    The brokers, the history's folder and the rate are not part of the id."""
    aside = ("replay_id", "access", "history", "per_second")
    told = {name: value for name, value in asdict(parameters).items() if name not in aside}
    return sha256(json.dumps([history_id, topic, where, told]).encode()).hexdigest()[:16]
