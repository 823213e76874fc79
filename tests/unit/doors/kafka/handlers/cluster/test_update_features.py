"""UpdateFeatures in all versions, and updates that are refused."""

from pathlib import Path

import pytest

from tailrace.wire.errors import Error
from tailrace.wire.messages.update_features import FeatureToUpdate, UpdatedFeature, UpdateFeaturesRequest
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.served import Served, versions, with_broker

NAME = "metadata.version"


def update(level: int, version: int, *, name: str = NAME, downgrade: bool = False) -> FeatureToUpdate:
    how = {"allow_downgrade": downgrade} if version == 0 else {"upgrade_type": 2 if downgrade else 1}
    return FeatureToUpdate(feature=name, max_version_level=level, **how)


@with_broker()
async def test_every_version_is_answered(served: Served) -> None:
    for version in versions(57):
        same = await served.call(UpdateFeaturesRequest(feature_updates=(update(4, version),)), version)
        assert (same.error_code, same.error_message) == (0, None)
        assert same.results == ((UpdatedFeature(feature=NAME),) if version < 2 else ())
        for downgrade in (False, True):
            lower = UpdateFeaturesRequest(feature_updates=(update(1, version, downgrade=downgrade),))
            refused = await served.call(lower, version)
            assert refused.error_code == Error.INVALID_UPDATE_VERSION
            assert "cannot be lowered to 1: a raise cannot be undone" in refused.error_message
            assert refused.results == ()
    assert served.node.hosted.image.level == 4


@pytest.mark.parametrize(
    ("updates", "error", "why"),
    [
        ((update(9, 2),), Error.INVALID_UPDATE_VERSION, "the controller supports metadata.version 1 to 4, not 9"),
        ((update(1, 2, name="x"),), Error.INVALID_UPDATE_VERSION, "there is no feature x"),
        ((update(2, 2), update(2, 2)), Error.INVALID_REQUEST, "names metadata.version twice"),
    ],
)
def test_invalid_updates_are_refused(
    updates: tuple[FeatureToUpdate, ...], error: Error, why: str, tmp_path: Path
) -> None:
    @with_broker()
    async def ask(served: Served) -> None:
        refused = await served.call(UpdateFeaturesRequest(feature_updates=updates), 2)
        assert refused.error_code == error
        assert why in refused.error_message

    ask(tmp_path)


@with_cluster()
async def test_any_broker_takes_it(cluster: Clustered) -> None:
    for broker in cluster.ids:
        answer = await cluster[broker].call(UpdateFeaturesRequest(feature_updates=(update(9, 2),)), 2)
        assert answer.error_code == Error.INVALID_UPDATE_VERSION
        assert "not 9" in answer.error_message
