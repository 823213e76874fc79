"""Feature levels: brokers of different releases share a cluster; once its level is raised, it refuses older brokers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tailrace import __version__
from tailrace.broker.lifecycle.registration import Registration
from tailrace.broker.node import CannotStart, Node
from tailrace.cluster.brokers import Broker
from tailrace.cluster.features import FEATURES_OF_0_1_0, NEWEST_LEVEL, SUPPORTED_FEATURES
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.wire.errors import Error
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.peers.register_broker import RegisterBroker
from tailrace.wire.messages.update_features import FeatureToUpdate, UpdateFeaturesRequest
from tests.unit.broker.simulated import Brokers, simulated

HTTP = Address("web", 8080)


async def raise_level(brokers: Brokers, asked: int, level: int = NEWEST_LEVEL, *, validate_only: bool = False) -> Any:
    update = FeatureToUpdate(feature="metadata.version", max_version_level=level)
    request = UpdateFeaturesRequest(feature_updates=(update,), validate_only=validate_only)
    return await brokers.call(asked, request, 2)


async def upgrade(brokers: Brokers, broker: int) -> None:
    """Stop one broker and start it as this release."""
    await brokers.stop(broker)
    await brokers.start(broker)


def levels(brokers: Brokers) -> list[int]:
    return [brokers[one].hosted.image.level for one in brokers.ids]


def registered(brokers: Brokers, seen_by: int, broker: int) -> Broker:
    return brokers[seen_by].hosted.image.brokers[BrokerId(broker)]


@simulated(features=FEATURES_OF_0_1_0)
async def test_a_cluster_is_upgraded_broker_by_broker_and_raised_on_request(brokers: Brokers) -> None:
    assert levels(brokers) == [1, 1, 1]
    for broker in (2, 3, 1):
        refused = await raise_level(brokers, 3)
        assert refused.error_code != 0
        await upgrade(brokers, broker)
        assert levels(brokers) == [1, 1, 1], "nothing is raised unasked"
    tried = await raise_level(brokers, 3, validate_only=True)
    assert (tried.error_code, levels(brokers)) == (0, [1, 1, 1])
    answer = await raise_level(brokers, 3)
    assert (answer.error_code, answer.error_message) == (0, None)
    await brokers.until(lambda: levels(brokers) == [4, 4, 4])
    versions = await brokers.call(1, ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    assert ("metadata.version", 1, 4) in [
        (one.name, one.min_version, one.max_version) for one in versions.supported_features
    ]
    finalized = [(one.name, one.max_version_level) for one in versions.finalized_features]
    assert ("metadata.version", 4) in finalized
    assert ("share.version", 1) in finalized


@simulated(features=FEATURES_OF_0_1_0)
async def test_a_fenced_broker_that_is_not_ready_holds_a_raise_up(brokers: Brokers) -> None:
    await upgrade(brokers, 1)
    await upgrade(brokers, 2)
    await brokers.stop(3)
    await brokers.until(lambda: registered(brokers, 1, 3).fenced)
    refused = await raise_level(brokers, 1)
    assert refused.error_code == Error.INVALID_UPDATE_VERSION
    assert "broker 3, which is fenced, supports metadata.version 1: start it with" in refused.error_message
    await brokers.start(3)
    assert (await raise_level(brokers, 1)).error_code == 0


@simulated(features=FEATURES_OF_0_1_0)
async def test_after_a_raise_an_older_broker_is_refused_and_told_what_to_do(brokers: Brokers) -> None:
    for broker in (1, 2, 3):
        await upgrade(brokers, broker)
    await brokers.stop(3)
    assert (await raise_level(brokers, 1)).error_code == 0
    with pytest.raises(CannotStart) as refused:
        await brokers.start(3, features=FEATURES_OF_0_1_0)
    assert str(refused.value) == (
        f"the cluster refuses this broker: broker 3 (tailrace {__version__}) supports metadata.version 1, "
        "the cluster is at metadata.version 4: start it with tailrace >= 0.2.0."
    )
    brokers.kill(3)
    with pytest.raises(CannotStart, match=r"the broker that asks to join .*supports metadata\.version 1"):
        await brokers.start(4, features=FEATURES_OF_0_1_0)
    await brokers.start(3)
    await brokers.until(lambda: not registered(brokers, 1, 3).fenced)


@simulated(features=FEATURES_OF_0_1_0)
async def test_a_raise_lets_brokers_register_the_endpoints_of_all_their_listeners(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = Node.register

    async def register_both(node: Node, endpoints: Mapping[str, Address]) -> None:
        await register(node, {**endpoints, "http": HTTP})

    monkeypatch.setattr(Node, "register", register_both)
    for broker in (1, 2, 3):
        await upgrade(brokers, broker)
    assert [list(registered(brokers, 1, one).endpoints) for one in (1, 2, 3)] == [["kafka"]] * 3
    assert (await raise_level(brokers, 2)).error_code == 0
    for seen_by in brokers.ids:
        await brokers.until(lambda: all(registered(brokers, seen_by, one).endpoints.get("http") for one in brokers.ids))  # noqa: B023
    assert registered(brokers, 3, 1).endpoints == {"kafka": Address("b1", 9092), "http": HTTP}


@simulated(features=FEATURES_OF_0_1_0)
async def test_a_controller_that_left_out_levels_is_followed_by_one_that_is_told_them(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller of 0.1.0 drops unknown fields of a registration: brokers register again with the next controller."""
    request = Registration._request
    monkeypatch.setattr(Registration, "_request", lambda self: _without_levels(request(self)))
    for broker in (2, 3, 1):
        await upgrade(brokers, broker)
    assert [registered(brokers, 1, one).features for one in (1, 2, 3)] == [FEATURES_OF_0_1_0] * 3
    monkeypatch.undo()
    leader = next(one for one in brokers.ids if brokers[one].is_controller)
    await upgrade(brokers, leader)
    await brokers.until(
        lambda: all(registered(brokers, leader, one).features == SUPPORTED_FEATURES for one in brokers.ids)
    )


def _without_levels(request: RegisterBroker) -> RegisterBroker:
    return replace(request, features=())


@simulated(count=1)
async def test_a_new_cluster_starts_at_the_newest_level_and_cannot_be_lowered(brokers: Brokers) -> None:
    assert levels(brokers) == [4]
    refused = await raise_level(brokers, 1, level=1)
    assert refused.error_code == Error.INVALID_UPDATE_VERSION
    assert "metadata.version is at level 4 and cannot be lowered to 1: a raise cannot be undone" in (
        refused.error_message
    )
