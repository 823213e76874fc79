"""Acknowledgements of records delivered to a member of a share group, in ShareFetch and ShareAcknowledge (KIP-932)."""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int32, Int64, struct


@struct
class AcknowledgementBatch:
    """A range of offsets and how its records were processed: one type for all, or one for each offset."""

    first_offset: Int64
    last_offset: Int64  # inclusive
    acknowledge_types: tuple[Int8, ...]  # 0: gap, 1: accept, 2: release, 3: reject, 4: renew (from version 2 on)


@struct
class PartitionToAcknowledge:
    """A partition, with acknowledgements of records that were delivered before."""

    partition: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


@struct
class TopicToAcknowledge:
    """The partitions of one topic."""

    topic_id: Id
    partitions: tuple[PartitionToAcknowledge, ...]
