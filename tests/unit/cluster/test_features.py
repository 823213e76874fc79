"""The gate: which versions each level unlocks, who supports what, and that the tables name everything there is."""

from typing import get_args

import pytest

from tailrace import __version__
from tailrace.cluster import features
from tailrace.cluster.features import (
    FEATURES_OF_0_1_0,
    FIRST_LEVEL,
    LEVELS,
    METADATA_VERSION,
    NEWEST_LEVEL,
    SUPPORTED_FEATURES,
    LevelRange,
    Locked,
    may_forward,
    message_version,
    record_version,
    registered_features,
    why_refused,
)
from tailrace.cluster.records import RECORD_KINDS
from tailrace.doors.kafka.registry import APIS
from tailrace.groups.records import KINDS
from tailrace.groups.share.records import ShareValue
from tailrace.queues.records import ShareStateValue
from tailrace.transactions.records import TransactionLogValue
from tailrace.wire.messages.peers import HELLO_KEY, PEER_MESSAGES
from tailrace.wire.schema import declaration

METADATA_KINDS = [cls.__name__ for cls in RECORD_KINDS.values()]
COORDINATOR_CLASSES = [
    *dict.fromkeys(value for _, value in KINDS.values()),
    TransactionLogValue,
    *get_args(ShareStateValue),
]
COORDINATOR_CLASSES += [value for value in get_args(ShareValue) if value not in COORDINATOR_CLASSES]
COORDINATOR_KINDS = [value.__name__ for value in COORDINATOR_CLASSES]
NEVER_WRITTEN = ["ConsumerGroupPartitionMetadataValue"]


def test_levels_are_numbered_one_by_one_and_the_newest_belongs_to_this_release() -> None:
    assert [one.number for one in LEVELS] == list(range(FIRST_LEVEL, NEWEST_LEVEL + 1))
    assert LEVELS[-1].release == __version__
    assert SUPPORTED_FEATURES[METADATA_VERSION] == LevelRange(FIRST_LEVEL, NEWEST_LEVEL)


def test_the_newest_level_writes_every_metadata_record_in_its_newest_version() -> None:
    declared = {cls.__name__: declaration(cls).versions.last for cls in RECORD_KINDS.values()}
    assert {kind: record_version(NEWEST_LEVEL, kind) for kind in METADATA_KINDS} == declared


def test_every_record_that_a_coordinator_writes_has_a_level() -> None:
    for kind, cls in zip(COORDINATOR_KINDS, COORDINATOR_CLASSES, strict=True):
        if kind in NEVER_WRITTEN:
            with pytest.raises(Locked, match=kind):
                record_version(NEWEST_LEVEL, kind)
        else:
            assert record_version(NEWEST_LEVEL, kind) in declaration(cls).versions


def test_the_newest_level_sends_every_peer_message_in_its_newest_version() -> None:
    declared = {one.name: one.versions.last for key, one in PEER_MESSAGES.items() if key != HELLO_KEY}
    assert {kind: message_version(NEWEST_LEVEL, kind) for kind in declared} == declared


def test_the_hello_stays_in_version_0_because_levels_are_told_in_it() -> None:
    assert declaration(PEER_MESSAGES[HELLO_KEY].request).versions == (0, 0)


def test_every_request_that_is_forwarded_has_a_level() -> None:
    for api in APIS.values():
        assert may_forward(SUPPORTED_FEATURES, api.key, api.versions.last) == api.by_controller, api.name


def test_the_tables_name_nothing_that_is_not_there() -> None:
    records = [kind for level in LEVELS for kind in level.records]
    messages = [kind for level in LEVELS for kind in level.messages]
    assert set(records) <= {*METADATA_KINDS, *COORDINATOR_KINDS}
    assert set(messages) <= {one.name for one in PEER_MESSAGES.values()}


@pytest.mark.parametrize(
    ("level", "kind", "version"),
    [
        (1, "TopicAdded", 0),
        (2, "TopicAdded", 0),  # what a level does not mention stays as it was
        (1, "OffsetCommitValue", 3),
        (1, "BrokerRegistered", 0),
        (2, "BrokerRegistered", 1),
        (NEWEST_LEVEL + 1, "BrokerRegistered", record_version(NEWEST_LEVEL, "BrokerRegistered")),
    ],
)
def test_the_version_of_a_record_at_a_level(level: int, kind: str, version: int) -> None:
    assert record_version(level, kind) == version


@pytest.mark.parametrize(
    ("level", "kind", "version"), [(1, "RegisterBroker", 0), (2, "RegisterBroker", 1), (2, "JoinCluster", 0)]
)
def test_the_version_of_a_peer_message_at_a_level(level: int, kind: str, version: int) -> None:
    assert message_version(level, kind) == version


@pytest.mark.parametrize("version_of", [record_version, message_version])
def test_what_no_level_names_is_never_written(version_of: object) -> None:
    with pytest.raises(Locked, match=r"Surprise is not part of metadata\.version 1"):
        version_of(1, "Surprise")  # type: ignore[operator]


def test_a_controller_of_0_1_0_is_sent_only_requests_that_it_knows() -> None:
    assert may_forward(FEATURES_OF_0_1_0, 19, 7)
    assert not may_forward(FEATURES_OF_0_1_0, 19, 8)
    assert not may_forward(FEATURES_OF_0_1_0, 57, 0)
    assert may_forward(SUPPORTED_FEATURES, 57, 2)


def test_a_broker_that_registers_no_levels_is_one_of_0_1_0() -> None:
    assert registered_features([]) is FEATURES_OF_0_1_0
    assert registered_features([(METADATA_VERSION, 1, 3)]) == {METADATA_VERSION: LevelRange(1, 3)}
    assert features.level_range(registered_features([(METADATA_VERSION, 1, 3)]), "group.version") == LevelRange(0, 0)


@pytest.mark.parametrize(
    ("supported", "level", "why"),
    [
        (LevelRange(1, 1), 1, ""),
        (LevelRange(1, 2), 1, ""),
        (LevelRange(1, 2), 2, ""),
        (
            LevelRange(1, 1),
            2,
            "broker 3 supports metadata.version 1, the cluster is at metadata.version 2: "
            "start it with tailrace >= 0.2.0",
        ),
        (
            LevelRange(1, 2),
            NEWEST_LEVEL + 1,
            f"broker 3 supports metadata.version 1 to 2, the cluster is at metadata.version {NEWEST_LEVEL + 1}: "
            f"start it with tailrace > {__version__}",
        ),
        (
            LevelRange(3, 4),
            1,
            "broker 3 supports metadata.version 3 to 4, the cluster is at metadata.version 1: "
            "raise the cluster to metadata.version 3 first, with a release that supports both",
        ),
    ],
)
def test_why_a_broker_is_refused(supported: LevelRange, level: int, why: str) -> None:
    assert why_refused("broker 3", METADATA_VERSION, supported, level) == why


def test_no_two_rooms_have_records_of_the_same_name() -> None:
    names = [*METADATA_KINDS, *COORDINATOR_KINDS]
    assert len(names) == len(set(names))
