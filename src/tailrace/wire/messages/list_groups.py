"""ListGroups: the groups that one broker coordinates."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@message(api=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Filters on the groups to list; an empty filter lets all groups through."""

    states_filter: tuple[str, ...] = wire(since=4, default=())
    types_filter: tuple[str, ...] = wire(since=5, default=())


@struct
class ListedGroup:
    """One group."""

    group_id: str
    protocol_type: str
    group_state: str = wire(since=4, default="", ignorable=True)
    group_type: str = wire(since=5, default="", ignorable=True)


@message(api=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...] = ()
