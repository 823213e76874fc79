"""Starting and ending offsets of a read: as given in the options, and resolved to one offset per partition.

From lowest to highest precedence, as in Spark's kafka source: `startingOffsets`, then `startingOffsetsByTimestamp` (per
partition), then `startingTimestamp` (for all partitions). If a partition has no record at or after the timestamp,
`startingOffsetsByTimestampStrategy` decides: an error, or the end of the partition.
"""

from dataclasses import dataclass, field
from typing import Literal

from tailrace.client.offsets import EARLIEST, LATEST
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, offsets_at, start_offsets
from tailrace.pipeline.option_names import Options
from tailrace.pipeline.source.offset_json import parse_offsets

Where = Literal["earliest", "latest", "offsets", "times", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSpec:
    where: Where
    by_partition: Offsets = field(default_factory=dict)  # offsets or timestamps per partition
    time_ms: int = -1  # one timestamp for all partitions
    if_no_record: Literal["error", "latest"] = "error"

    @property
    def changes_over_time(self) -> bool:
        """Whether resolving it again later may give other offsets."""
        return (
            self.where == "latest"
            or (self.where == "offsets" and LATEST in self.by_partition.values())
            or (self.where in ("time", "times") and self.if_no_record == "latest")
        )


def starting_spec(options: Options, mode: str) -> OffsetSpec:
    strategy = options.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    if_no_record: Literal["error", "latest"] = "latest" if strategy == "latest" else "error"
    if "startingTimestamp" in options:
        return OffsetSpec(where="time", time_ms=_time("startingTimestamp", options), if_no_record=if_no_record)
    if "startingOffsetsByTimestamp" in options:
        told = parse_offsets("startingOffsetsByTimestamp", options["startingOffsetsByTimestamp"])
        return OffsetSpec(where="times", by_partition=told, if_no_record=if_no_record)
    default = "earliest" if mode == "batch" else "latest"
    spec = _spec_from_text("startingOffsets", options.text("startingOffsets", default))
    if mode == "batch" and spec.changes_over_time:
        raise PipelineFailed("startingOffsets: a batch read that starts at `latest` would read nothing")
    return spec


def ending_spec(options: Options) -> OffsetSpec:
    if "endingTimestamp" in options:
        return OffsetSpec(where="time", time_ms=_time("endingTimestamp", options), if_no_record="latest")
    if "endingOffsetsByTimestamp" in options:
        told = parse_offsets("endingOffsetsByTimestamp", options["endingOffsetsByTimestamp"])
        return OffsetSpec(where="times", by_partition=told, if_no_record="latest")
    spec = _spec_from_text("endingOffsets", options.text("endingOffsets", "latest"))
    if spec.where == "earliest" or EARLIEST in spec.by_partition.values():
        raise PipelineFailed("endingOffsets: a read that ends at `earliest` would read nothing")
    return spec


def resolve(cluster: Cluster, spec: OffsetSpec, partitions: list[TopicPartition], *, committed: bool) -> Offsets:
    """The offset that `spec` means in every partition."""
    match spec.where:
        case "earliest":
            return start_offsets(cluster, partitions)
        case "latest":
            return end_offsets(cluster, partitions, committed=committed)
        case "offsets":
            return _given(cluster, spec, partitions, committed=committed)
        case "time":
            return _at_times(cluster, spec, dict.fromkeys(partitions, spec.time_ms), committed=committed)
        case "times":
            _demand_all(spec, partitions)
            return _at_times(cluster, spec, {one: spec.by_partition[one] for one in partitions}, committed=committed)


def _given(cluster: Cluster, spec: OffsetSpec, partitions: list[TopicPartition], *, committed: bool) -> Offsets:
    _demand_all(spec, partitions)
    named = {one: spec.by_partition[one] for one in partitions if spec.by_partition[one] in (EARLIEST, LATEST)}
    return {one: spec.by_partition[one] for one in partitions} | offsets_at(cluster, named, committed=committed)


def _at_times(cluster: Cluster, spec: OffsetSpec, times: Offsets, *, committed: bool) -> Offsets:
    found = offsets_at(cluster, times, committed=committed)
    too_late = [one for one, offset in found.items() if offset < 0]
    if too_late and spec.if_no_record == "error":
        raise PipelineFailed(
            f"no record of {too_late[0]} is as late as {times[too_late[0]]}; to start at the end of such partitions, "
            'set startingOffsetsByTimestampStrategy = "latest"'
        )
    return found | end_offsets(cluster, too_late, committed=committed)


def _demand_all(spec: OffsetSpec, partitions: list[TopicPartition]) -> None:
    missing = [str(one) for one in partitions if one not in spec.by_partition]
    if missing:
        raise PipelineFailed(f"offsets have to be given for every partition; missing: {', '.join(missing)}")


def _spec_from_text(name: str, value: str) -> OffsetSpec:
    if value.lower() == "earliest":
        return OffsetSpec(where="earliest")
    if value.lower() == "latest":
        return OffsetSpec(where="latest")
    if not value.lstrip().startswith("{"):
        raise PipelineFailed(f"{name} = {value!r}: it is earliest, latest, or JSON of offsets by topic and partition")
    return OffsetSpec(where="offsets", by_partition=parse_offsets(name, value))


def _time(name: str, options: Options) -> int:
    value = options[name]
    if not value.lstrip("-").isdecimal():
        raise PipelineFailed(f"{name} = {value!r}: it is a time in milliseconds since 1970")
    return int(value)
