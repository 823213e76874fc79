"""FindCoordinator: coordinators of groups and of share partitions."""

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
async def test_version_6_finds_the_coordinator_of_a_share_partition(served: Served) -> None:
    keys = ("g:AAAAAAAAAAAAAAAAAAAABQ:0", "a:group:with:colons:AAAAAAAAAAAAAAAAAAAABQ:12")
    found = (await served.call(FindCoordinatorRequest(coordinator_keys=keys, key_type=2), 6)).coordinators
    here = (0, served.node.broker_id, served.node.kafka_port)
    assert [(one.key, one.error_code, one.node_id, one.port) for one in found] == [(key, *here) for key in keys]
    early = await served.call(FindCoordinatorRequest(coordinator_keys=keys[:1], key_type=2), 5)
    assert early.coordinators[0].error_code == Error.INVALID_REQUEST


@with_broker()
async def test_what_names_no_share_partition_is_refused(served: Served) -> None:
    wrong = (
        "g",
        "g:t",
        "g:t:0",
        "g:AAAAAAAAAAAAAAAAAAAABQ:",
        "g:AAAAAAAAAAAAAAAAAAAABQ:-1",
        ":AAAAAAAAAAAAAAAAAAAABQ:0",
    )
    found = (await served.call(FindCoordinatorRequest(coordinator_keys=wrong, key_type=2), 6)).coordinators
    assert [one.error_code for one in found] == [Error.INVALID_REQUEST] * len(wrong)
    assert served.node.coordinators.shares.topic is None, "nothing was created for it"


@with_broker()
async def test_unknown_key_types_are_refused(served: Served) -> None:
    refused = await served.call(FindCoordinatorRequest(key="g", key_type=7), 3)
    assert refused.error_code == Error.INVALID_REQUEST
