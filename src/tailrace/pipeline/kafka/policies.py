"""What topics do with records that are old: whether some may be gone from between others."""

from collections.abc import Sequence
from typing import Final

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked

topic_resource: Final = 2


def compacted(cluster: Cluster, topics: Sequence[str]) -> list[str]:
    """Those of the topics whose records may be compacted away."""
    asked = tuple(
        ResourceAsked(resource_type=topic_resource, resource_name=topic, config_names=("cleanup.policy",))
        for topic in topics
    )
    results = cluster.ask_any(DescribeConfigsRequest(resources=asked)).results if asked else ()
    return [one.resource_name for one in results if any("compact" in (setting.value or "") for setting in one.configs)]
