"""FindCoordinator: coordinators of groups; share groups have none."""

from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.doors.kafka.served import Served, versions, with_broker


@with_broker()
async def test_every_version_finds_a_groups_coordinator(served: Served) -> None:
    here = (0, served.node.broker_id, "127.0.0.1", served.node.kafka_port)
    for version in versions(10):
        if version < 4:
            one = await served.call(FindCoordinatorRequest(key="g"), version)
            assert (one.error_code, one.node_id, one.host, one.port) == here
        else:
            many = await served.call(FindCoordinatorRequest(coordinator_keys=("g", "h")), version)
            assert [one.key for one in many.coordinators] == ["g", "h"]
            assert all((one.error_code, one.node_id, one.host, one.port) == here for one in many.coordinators)


@with_broker()
async def test_nobody_coordinates_share_groups_yet(served: Served) -> None:
    (one,) = (await served.call(FindCoordinatorRequest(coordinator_keys=("g",), key_type=2), 6)).coordinators
    assert (one.error_code, one.node_id, one.port) == (Error.COORDINATOR_NOT_AVAILABLE, -1, -1)
    for version, kind in ((3, 7), (3, 2)):
        refused = await served.call(FindCoordinatorRequest(key="g", key_type=kind), version)
        assert refused.error_code == Error.INVALID_REQUEST
