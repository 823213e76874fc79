"""The options of a read, checked before anything is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tailrace.pipeline.access import Access
from tailrace.pipeline.durations import milliseconds
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.option_names import Options
from tailrace.pipeline.source.offset_json import parse_assignment
from tailrace.pipeline.source.offset_spec import OffsetSpec, ending_spec, starting_spec

KNOWN: Final = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "startingTimestamp",
    "endingTimestamp", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy", "failOnDataLoss",
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
    "includeHeaders", "groupIdPrefix", "queryId", "corruptBatches", "quarantinePath",
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs"),  # accepted, no effect
)  # fmt: skip
SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern", "assign")
DEFAULT_PREFIX: Final = "tailrace-spark"
DEFAULT_DELAY_MS: Final = 15 * 60 * 1000
FETCH_DEFAULT_BYTES: Final = 4 * 1024 * 1024

Mode = Literal["batch", "stream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    kind: str  # one of `SUBSCRIPTIONS`
    value: str

    def partitions(self, cluster: Cluster) -> list[TopicPartition]:
        if self.kind == "subscribePattern":
            return cluster.partitions_matching(self.value)
        if self.kind == "assign":
            wanted = parse_assignment(self.value)
            there = cluster.partitions(sorted({one.topic: None for one in wanted}))
            missing = [str(one) for one in wanted if one not in there]
            if missing:
                raise PipelineFailed(f"assign names partitions that are not there: {', '.join(missing)}")
            return wanted
        return cluster.partitions([name.strip() for name in self.value.split(",") if name.strip()])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    access: Access
    subscription: Subscription
    start: OffsetSpec
    end: OffsetSpec
    committed: bool
    fail_on_data_loss: bool
    headers: bool
    min_partitions: int | None
    max_records: int | None  # per task
    max_offsets: int | None  # per trigger
    min_offsets: int | None
    max_delay_ms: int
    query_id: str
    group: str  # the group to which consumed offsets are committed; empty: none
    fetch_bytes: int
    quarantine: str  # the folder for damaged batches; empty: a damaged batch fails the read

    @property
    def start_group(self) -> str:
        """The group that stores the initial offsets of a query that starts at `latest`."""
        return f"{DEFAULT_PREFIX}-start-{self.query_id}"


def read_options(given: Mapping[str, str], mode: Mode) -> ReadOptions:
    options = Options(given, KNOWN)
    start, end = starting_spec(options, mode), ending_spec(options)
    query_id = options.text("queryId")
    if mode == "stream":
        _refuse_for_streams(options, start, query_id)
    return ReadOptions(
        access=options.access,
        subscription=_subscription(options),
        start=start,
        end=end,
        committed=options.one_of("kafka.isolation.level", ("read_committed", "read_uncommitted"), "read_committed")
        == "read_committed",
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        headers=options.flag("includeHeaders", default=False),
        min_partitions=options.number("minPartitions"),
        max_records=options.number("maxRecordsPerPartition"),
        max_offsets=options.number("maxOffsetsPerTrigger"),
        min_offsets=options.number("minOffsetsPerTrigger"),
        max_delay_ms=milliseconds("maxTriggerDelay", options.text("maxTriggerDelay"), DEFAULT_DELAY_MS),
        query_id=query_id,
        group=_group(options, query_id),
        fetch_bytes=options.number("kafka.max.partition.fetch.bytes") or FETCH_DEFAULT_BYTES,
        quarantine=_quarantine(options),
    )


def _quarantine(options: Options) -> str:
    is_set_aside = options.one_of("corruptBatches", ("fail", "quarantine"), "fail") == "quarantine"
    if is_set_aside and not options.text("quarantinePath"):
        raise PipelineFailed("corruptBatches = quarantine needs quarantinePath, the folder where they are set aside")
    return options.text("quarantinePath") if is_set_aside else ""


def _subscription(options: Options) -> Subscription:
    found = [kind for kind in SUBSCRIPTIONS if kind in options]
    if len(found) != 1:
        said = " and ".join(found) if found else "none of them"
        raise PipelineFailed(f"say what to read with one of {', '.join(SUBSCRIPTIONS)}; given: {said}")
    if not options[found[0]].strip():
        raise PipelineFailed(f"{found[0]} is empty: name a topic")
    return Subscription(kind=found[0], value=options[found[0]])


def _group(options: Options, query_id: str) -> str:
    if "kafka.group.id" in options:
        return options["kafka.group.id"]
    if "groupIdPrefix" in options:
        return f"{options['groupIdPrefix']}-{query_id}" if query_id else options["groupIdPrefix"]
    return f"{DEFAULT_PREFIX}-{query_id}" if query_id else ""


def _refuse_for_streams(options: Options, start: OffsetSpec, query_id: str) -> None:
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if name in options:
            raise PipelineFailed(f"{name} is for batch reads: a stream has no end")
    if start.changes_over_time and not query_id:
        raise PipelineFailed(
            "a stream that starts at `latest` needs the option queryId, a name for this query that stays the same: "
            "Spark asks for the start again after a crash, and records written in between would be skipped silently. "
            'The start is kept on the broker under this name. Or set option("startingOffsets", "earliest").'
        )
