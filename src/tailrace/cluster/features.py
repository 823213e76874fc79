"""Feature levels: which record versions are written and which peer messages are sent (as in KIP-584 and KIP-778).

A cluster is upgraded broker by broker, so for a while brokers of two releases share one metadata log, one set of
coordinator logs and one peer protocol. The feature `metadata.version` keeps them compatible. Its *level* in force (the
"finalized" level) is a record of the metadata log; `LEVELS` says what each level unlocks.

Rules:
- A record kind or version, or a peer message kind or version, is written or sent only at a level that unlocks it.
- Every broker registers the range of levels that it supports. Brokers of 0.1.0 register none; see `FEATURES_OF_0_1_0`.
- A level is raised only on request (`cluster.feature_updates`), and only if every registered broker supports it. Fenced
  brokers count: a fenced broker may come back.
- A level is never lowered: the log may hold records that older releases cannot read.
- A broker that does not support the level in force is refused when it connects, joins or registers.
- A new cluster starts at the newest level of the release that founds it.

A field that older releases may ignore needs no level: a tagged field can be added to any version, and a release that
does not know the tag skips it. That is how brokers register their levels before the cluster has been raised.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from tailrace.model.frozen import frozen

K = TypeVar("K")

METADATA_VERSION: Final = "metadata.version"
SHARE_VERSION: Final = "share.version"  # raised together with metadata.version, when that reaches SHARE_GROUPS_LEVEL


class LevelRange(NamedTuple):
    """The levels of one feature that a broker supports, both ends included. Level 0: the feature is not in use."""

    first: int
    last: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.first <= level <= self.last

    def __str__(self) -> str:
        return str(self.last) if self.first == self.last else f"{self.first} to {self.last}"


Features = Mapping[str, LevelRange]  # by the feature's name

NO_LEVELS: Final = LevelRange(0, 0)  # of a feature that a broker does not know


@frozen
class Level:
    """One level of `metadata.version`: what may be written and sent from it on, beyond the level before."""

    number: int
    release: str  # the first release that supports it
    records: Mapping[str, int]  # the version that is written, by the name of the record's class
    messages: Mapping[str, int]  # the version that peers are sent, by the name of the request's class
    forwarded: Mapping[int, int]  # clients' requests that are forwarded to the controller: newest version by API key


LEVELS: Final = (
    Level(
        number=1,
        release="0.1.0",
        records={
            # __cluster_metadata
            "TopicAdded": 0,
            "PartitionAdded": 0,
            "TopicRemoved": 0,
            "SettingChanged": 0,
            "FeatureRaised": 0,
            "ProducerIdsTaken": 0,
            "PartitionStartMoved": 0,
            "BrokerRegistered": 0,
            "BrokerFenced": 0,
            "PartitionLed": 0,
            "PartitionWidened": 0,
            # __consumer_offsets
            "OffsetCommitValue": 3,
            "GroupMetadataValue": 3,
            "ConsumerGroupMetadataValue": 0,
            "ConsumerGroupMemberMetadataValue": 0,
            "ConsumerGroupTargetAssignmentMetadataValue": 0,
            "ConsumerGroupTargetAssignmentMemberValue": 0,
            "ConsumerGroupCurrentMemberAssignmentValue": 0,
            "ConsumerGroupRegularExpressionValue": 0,
            # __transaction_state
            "TransactionLogValue": 1,
        },
        messages={
            "JoinCluster": 0,
            "RegisterBroker": 0,
            "LeaveCluster": 0,
            "ReportLeaders": 0,
            "TakeProducerIds": 0,
            "MoveStart": 0,
            "Forward": 0,
            "HandOver": 0,
            "MakeInternalTopic": 0,
            "WriteMarkers": 0,
            "TakePart": 0,
        },
        forwarded={19: 7, 20: 6, 33: 2, 37: 3, 44: 1, 55: 2},
    ),
    Level(
        number=2,
        release="0.2.0",
        records={"BrokerRegistered": 1},
        messages={"RegisterBroker": 1},
        forwarded={57: 2},
    ),
    Level(
        number=3,
        release="0.2.0",
        records={
            # __consumer_offsets
            "ShareGroupMetadataValue": 0,
            "ShareGroupMemberMetadataValue": 0,
            "ShareGroupTargetAssignmentMetadataValue": 0,
            "ShareGroupTargetAssignmentMemberValue": 0,
            "ShareGroupCurrentMemberAssignmentValue": 0,
            "ShareGroupStatePartitionMetadataValue": 0,
            # __share_group_state
            "ShareSnapshotValue": 0,
            "ShareUpdateValue": 0,
        },
        messages={"CallShareCoordinator": 0, "InitializeSharePartition": 0, "ReadLogEnds": 0, "ReadMetadataEnd": 0},
        forwarded={},
    ),
    Level(number=4, release="0.2.0", records={}, messages={}, forwarded={}),
)

FIRST_LEVEL: Final = LEVELS[0].number
NEWEST_LEVEL: Final = LEVELS[-1].number
NAMED_ENDPOINTS_LEVEL: Final = 2  # from here on brokers register an endpoint for each of their listeners
CLIENT_LANE_LEVEL: Final = 2  # from here on a door's client may connect through the peer port
SHARE_GROUPS_LEVEL: Final = 3  # from here on there are share groups
COMPACTION_LEVEL: Final = 4  # from here on logs are compacted

FEATURES_OF_0_1_0: Final[Features] = MappingProxyType(
    {METADATA_VERSION: LevelRange(1, 1), "group.version": LevelRange(1, 1), "transaction.version": LevelRange(1, 2)}
)
SUPPORTED_FEATURES: Final[Features] = MappingProxyType(
    {
        METADATA_VERSION: LevelRange(FIRST_LEVEL, NEWEST_LEVEL),
        "group.version": LevelRange(1, 1),
        "transaction.version": LevelRange(1, 2),
        SHARE_VERSION: LevelRange(0, 1),
    }
)


class Locked(Exception):
    """A record or message that the level in force does not unlock was about to be written: an error of our own."""


def record_version(level: int, kind: str) -> int:
    """The version in which records of this kind are written at a level."""
    return _unlocked(_RECORDS, level, kind)


def message_version(level: int, kind: str) -> int:
    """The version in which peers are sent requests of this kind at a level."""
    return _unlocked(_MESSAGES, level, kind)


def may_forward(supported: Features, api_key: int, version: int) -> bool:
    """Whether a controller that supports these levels can serve a client's request that another broker forwards.

    This depends on the controller's release and not on the level in force: a cluster is raised by such a request."""
    newest = level_range(supported, METADATA_VERSION).last
    return version <= _at(_FORWARDED, newest).get(api_key, -1)


def release_of(level: int) -> str:
    """The first release that supports a level; for people."""
    known = [one.release for one in LEVELS if one.number == level]
    return f">= {known[0]}" if known else f"> {LEVELS[-1].release}"


def level_range(features: Features, name: str) -> LevelRange:
    return features.get(name, NO_LEVELS)


def registered_features(registered: Iterable[tuple[str, int, int]]) -> Features:
    """What a broker supports, by what it has registered: name, first and last level of each feature."""
    found = {name: LevelRange(first, last) for name, first, last in registered}
    return MappingProxyType(found) if found else FEATURES_OF_0_1_0


def why_refused(who: str, name: str, supported: LevelRange, level: int) -> str:
    """Why a broker cannot take part at the level in force, and what to do; "" if it can."""
    if level in supported:
        return ""
    if level < supported.first:
        advice = f"raise the cluster to {name} {supported.first} first, with a release that supports both"
    else:
        advice = f"start it with tailrace {release_of(level)}" if name == METADATA_VERSION else "start a later release"
    return f"{who} supports {name} {supported}, the cluster is at {name} {level}: {advice}"


def _merged(steps: Iterable[tuple[int, Mapping[K, int]]]) -> Mapping[int, Mapping[K, int]]:
    """By level, all that is unlocked there: what each level adds is kept by those after it."""
    so_far: Mapping[K, int] = {}
    found = {}
    for number, added in steps:
        so_far = found[number] = MappingProxyType({**so_far, **added})
    return MappingProxyType(found)


def _at(table: Mapping[int, Mapping[K, int]], level: int) -> Mapping[K, int]:
    """A broker that meets a level it does not know stops (`broker.metadata.follower`); until then it knows its own."""
    return table[min(level, NEWEST_LEVEL)]


def _unlocked(table: Mapping[int, Mapping[str, int]], level: int, kind: str) -> int:
    version = _at(table, level).get(kind)
    if version is None:
        raise Locked(f"{kind} is not part of {METADATA_VERSION} {level}: see LEVELS in cluster/features.py")
    return version


_RECORDS: Final = _merged((one.number, one.records) for one in LEVELS)
_MESSAGES: Final = _merged((one.number, one.messages) for one in LEVELS)
_FORWARDED: Final = _merged((one.number, one.forwarded) for one in LEVELS)
