"""DeleteGroups: forget groups that nobody is in, with how far they have read."""

from tailrace.wire.schema import Int16, Int32, message, struct


@message(api=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """Which groups to forget."""

    groups_names: tuple[str, ...]


@struct
class DeletedGroup:
    """What became of one."""

    group_id: str
    error_code: Int16 = 0


@message(api=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """What became of each."""

    throttle_time_ms: Int32 = 0
    results: tuple[DeletedGroup, ...]
