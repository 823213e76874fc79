"""FindCoordinator: which broker keeps the state of a group, a transaction or a share group."""

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@message(api=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """Whose coordinator to find: `key` up to version 3, `coordinator_keys` from 4 on."""

    key: str = wire(until=3, default="")
    key_type: Int8 = wire(since=1, default=0)  # 0: a group, 1: a transaction, 2: a share group's partition
    coordinator_keys: tuple[str, ...] = wire(since=4, default=())


@struct
class Coordinator:
    """The broker for one key, or an error."""

    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator, in the top fields up to version 3, in `coordinators` from 4 on."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = wire(until=3, default=0)
    error_message: str | None = wire(nullable="0+", since=1, until=3, default=None, ignorable=True)
    node_id: Int32 = wire(until=3, default=0)
    host: str = wire(until=3, default="")
    port: Int32 = wire(until=3, default=0)
    coordinators: tuple[Coordinator, ...] = wire(since=4, default=())
