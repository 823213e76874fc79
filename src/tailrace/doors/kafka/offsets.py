"""What handlers of offsets share: whether one may be committed for a partition."""

from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.groups.offsets import Place, check_metadata
from tailrace.model.faults import Fault, UnknownTopic


def placed(call: Call, topic: Topic, partition: int, metadata: str) -> Place | Fault:
    """Which partition is meant, or why nothing can be committed for it."""
    if not 0 <= partition < len(topic.partitions):
        return UnknownTopic(f"{topic.name} has no partition {partition}")
    try:
        check_metadata(metadata, call.node.settings.offset_metadata_max_bytes)
    except Fault as fault:
        return fault
    return Place(topic.name, partition)
