"""Acknowledgements of records delivered to a member of a share group, in ShareFetch and ShareAcknowledge (KIP-932)."""

from tailrace.wire.schema import Int8, Int64, struct


@struct
class AcknowledgementBatch:
    """A range of offsets and how its records were processed: one type for all, or one for each offset."""

    first_offset: Int64
    last_offset: Int64  # inclusive
    acknowledge_types: tuple[Int8, ...]  # 0: gap, 1: accept, 2: release, 3: reject, 4: renew (from version 2 on)
