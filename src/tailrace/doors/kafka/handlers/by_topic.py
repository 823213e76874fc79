"""Results of partitions, in the order and the groups in which responses have them."""

from collections.abc import Mapping
from typing import TypeVar

from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.results import ExplainedResult

Result = TypeVar("Result")


def by_topic(results: Mapping[PartitionName, Result]) -> dict[str, dict[int, Result]]:
    """The results by topic, and then by partition."""
    topics: dict[str, dict[int, Result]] = {}
    for name, one in results.items():
        topics.setdefault(name.topic, {})[name.partition] = one
    return topics


def explained(partition: int, fault: Fault | None) -> ExplainedResult:
    if fault is None:
        return ExplainedResult(partition=partition)
    return ExplainedResult(partition=partition, error_code=error_of(fault), error_message=str(fault))
