"""DeleteGroups: delete empty groups and their committed offsets."""

from tailrace.wire.schema import Int16, Int32, message, struct


@message(api=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """The groups to delete."""

    groups_names: tuple[str, ...]


@struct
class DeletedGroup:
    """The result for one group."""

    group_id: str
    error_code: Int16 = 0


@message(api=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """The result for each group."""

    throttle_time_ms: Int32 = 0
    results: tuple[DeletedGroup, ...]
