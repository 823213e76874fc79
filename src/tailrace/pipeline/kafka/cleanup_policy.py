"""Cleanup policies of topics: whether compaction may remove records between others."""

from collections.abc import Sequence
from typing import Final

from tailrace.model.topics import is_compacted
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked

TOPIC_RESOURCE: Final = 2


def compacted_topics(cluster: Cluster, topics: Sequence[str]) -> list[str]:
    """The topics among these that are compacted, according to `cleanup.policy`."""
    asked = tuple(
        ResourceAsked(resource_type=TOPIC_RESOURCE, resource_name=topic, config_names=("cleanup.policy",))
        for topic in topics
    )
    results = cluster.call_any(DescribeConfigsRequest(resources=asked)).results if asked else ()
    for one in results:
        if one.error_code not in (Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION):
            raise PipelineFailed(
                f"cannot tell whether {one.resource_name} is compacted: the broker says {Error(one.error_code).name}; "
                "the user needs permission to describe the topic's configuration"
            )
    return [one.resource_name for one in results if any(is_compacted(setting.value or "") for setting in one.configs)]
