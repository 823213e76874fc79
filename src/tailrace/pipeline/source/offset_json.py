"""Offsets as Spark's kafka source writes them: `{"orders":{"0":42,"1":17}}`.

Spark compares offsets as text, so the same offsets in another order would start an empty micro-batch. Therefore topics
and partitions are always written in sorted order.
"""

import json
from collections.abc import Mapping
from typing import Any

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets

OffsetJson = dict[str, dict[str, int]]


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetJson:
    told: OffsetJson = {}
    for one in sorted(offsets):
        told.setdefault(one.topic, {})[str(one.partition)] = offsets[one]
    return told


def from_json(told: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in told.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(name: str, text: str) -> Offsets:
    """Parse the offsets in a user's option; -2 means earliest and -1 latest."""
    told = _parse(name, text)
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in told.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise PipelineFailed(f'{name} = {text}: write it like {{"orders":{{"0":42,"1":-2}}}}') from None


def parse_assignment(text: str) -> list[TopicPartition]:
    told = _parse("assign", text)
    try:
        return sorted(TopicPartition(topic, int(one)) for topic, partitions in told.items() for one in partitions)
    except (AttributeError, TypeError, ValueError):
        raise PipelineFailed(f'assign = {text}: write it like {{"orders":[0,1]}}') from None


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise PipelineFailed(f"{name} = {text}: this is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise PipelineFailed(f"{name} = {text}: it has to be a JSON object")
    return told
