"""FindCoordinator: the broker that coordinates a group, a transactional id or a share group."""

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@message(api=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """The keys whose coordinator is wanted: `key` up to version 3, `coordinator_keys` from 4 on."""

    key: str = wire(until=3, default="")
    key_type: Int8 = wire(since=1, default=0)  # 0: group, 1: transactional id, 2: partition of a share group
    coordinator_keys: tuple[str, ...] = wire(since=4, default=())


@struct
class Coordinator:
    """The coordinator of one key, or an error."""

    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator: in the top-level fields up to version 3, in `coordinators` from 4 on."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = wire(until=3, default=0)
    error_message: str | None = wire(nullable="0+", since=1, until=3, default=None, ignorable=True)
    node_id: Int32 = wire(until=3, default=0)
    host: str = wire(until=3, default="")
    port: Int32 = wire(until=3, default=0)
    coordinators: tuple[Coordinator, ...] = wire(since=4, default=())
