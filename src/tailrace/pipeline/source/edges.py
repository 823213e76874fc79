"""Starting and ending offsets of a read: as given in the options, and resolved to one offset per partition.

From lowest to highest precedence, as in Spark's kafka source: `startingOffsets`, then `startingOffsetsByTimestamp` (per
partition), then `startingTimestamp` (for all partitions). If a partition has no record at or after the timestamp,
`startingOffsetsByTimestampStrategy` decides: an error, or the end of the partition.
"""

from dataclasses import dataclass, field
from typing import Literal

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import EARLIEST, LATEST, Offsets, end_offsets, offsets_at, start_offsets
from tailrace.pipeline.option_names import Options
from tailrace.pipeline.source.offset_json import parse_offsets

Where = Literal["earliest", "latest", "offsets", "times", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    where: Where
    told: Offsets = field(default_factory=dict)  # offsets or timestamps per partition
    time_ms: int = -1  # one timestamp for all partitions
    none_that_late: Literal["error", "latest"] = "error"

    @property
    def needs_memory(self) -> bool:
        """Whether resolving the edge again later may give other offsets."""
        return (
            self.where == "latest"
            or (self.where == "offsets" and LATEST in self.told.values())
            or (self.where in ("time", "times") and self.none_that_late == "latest")
        )


def starting_edge(options: Options, mode: str) -> Edge:
    strategy = options.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    none_that_late: Literal["error", "latest"] = "latest" if strategy == "latest" else "error"
    if "startingTimestamp" in options:
        return Edge(where="time", time_ms=_time("startingTimestamp", options), none_that_late=none_that_late)
    if "startingOffsetsByTimestamp" in options:
        told = parse_offsets("startingOffsetsByTimestamp", options["startingOffsetsByTimestamp"])
        return Edge(where="times", told=told, none_that_late=none_that_late)
    default = "earliest" if mode == "batch" else "latest"
    edge = _offsets_edge("startingOffsets", options.text("startingOffsets", default))
    if mode == "batch" and edge.needs_memory:
        raise PipelineFailed("startingOffsets: a batch read that starts at `latest` would read nothing")
    return edge


def ending_edge(options: Options) -> Edge:
    if "endingTimestamp" in options:
        return Edge(where="time", time_ms=_time("endingTimestamp", options), none_that_late="latest")
    if "endingOffsetsByTimestamp" in options:
        told = parse_offsets("endingOffsetsByTimestamp", options["endingOffsetsByTimestamp"])
        return Edge(where="times", told=told, none_that_late="latest")
    edge = _offsets_edge("endingOffsets", options.text("endingOffsets", "latest"))
    if edge.where == "earliest" or EARLIEST in edge.told.values():
        raise PipelineFailed("endingOffsets: a read that ends at `earliest` would read nothing")
    return edge


def resolve(cluster: Cluster, edge: Edge, partitions: list[TopicPartition], *, committed: bool) -> Offsets:
    """The offset of the edge in every partition."""
    match edge.where:
        case "earliest":
            return start_offsets(cluster, partitions)
        case "latest":
            return end_offsets(cluster, partitions, committed=committed)
        case "offsets":
            return _given(cluster, edge, partitions, committed=committed)
        case "time":
            return _at_times(cluster, edge, dict.fromkeys(partitions, edge.time_ms), committed=committed)
        case "times":
            _demand_all(edge, partitions)
            return _at_times(cluster, edge, {one: edge.told[one] for one in partitions}, committed=committed)


def _given(cluster: Cluster, edge: Edge, partitions: list[TopicPartition], *, committed: bool) -> Offsets:
    _demand_all(edge, partitions)
    named = {one: edge.told[one] for one in partitions if edge.told[one] in (EARLIEST, LATEST)}
    return {one: edge.told[one] for one in partitions} | offsets_at(cluster, named, committed=committed)


def _at_times(cluster: Cluster, edge: Edge, times: Offsets, *, committed: bool) -> Offsets:
    found = offsets_at(cluster, times, committed=committed)
    too_late = [one for one, offset in found.items() if offset < 0]
    if too_late and edge.none_that_late == "error":
        raise PipelineFailed(
            f"no record of {too_late[0]} is as late as {times[too_late[0]]}; to start at the end of such partitions, "
            'set startingOffsetsByTimestampStrategy = "latest"'
        )
    return found | end_offsets(cluster, too_late, committed=committed)


def _demand_all(edge: Edge, partitions: list[TopicPartition]) -> None:
    missing = [str(one) for one in partitions if one not in edge.told]
    if missing:
        raise PipelineFailed(f"offsets have to be given for every partition; missing: {', '.join(missing)}")


def _offsets_edge(name: str, value: str) -> Edge:
    if value.lower() == "earliest":
        return Edge(where="earliest")
    if value.lower() == "latest":
        return Edge(where="latest")
    if not value.lstrip().startswith("{"):
        raise PipelineFailed(f"{name} = {value!r}: it is earliest, latest, or JSON of offsets by topic and partition")
    return Edge(where="offsets", told=parse_offsets(name, value))


def _time(name: str, options: Options) -> int:
    value = options[name]
    if not value.lstrip("-").isdecimal():
        raise PipelineFailed(f"{name} = {value!r}: it is a time in milliseconds since 1970")
    return int(value)
