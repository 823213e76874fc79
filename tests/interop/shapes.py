"""What an administrator asks for and is told, in the form that all drivers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """What a new topic is to have; -1 leaves a count to the broker."""

    partitions: int = 1
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)


ONE_PARTITION = TopicPlan()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """A topic as described to a client."""

    partitions: tuple[int, ...]
    leaders: tuple[int, ...]
    replicas: tuple[tuple[int, ...], ...]
    in_sync: tuple[tuple[int, ...], ...]
    topic_id: str | None = None  # None: the client does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a topic, a broker or a group; `own`: somebody set it, it is not a default."""

    value: str | None
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShape:
    """The cluster as described to a client: brokers as (id, host, port)."""

    cluster_id: str
    controller: int
    brokers: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumShape:
    """Who votes on the cluster's metadata, and who only listens."""

    leader: int
    voters: tuple[int, ...]
    observers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShape:
    """A group as described to a client."""

    state: str
    protocol: str
    clients: tuple[str, ...]  # the client id of each member


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionShape:
    """A transactional id as described to a client."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupShape:
    """A share group as described to a client."""

    state: str
    members: tuple[tuple[int, ...], ...]  # the partitions that each member has


class ShareOffset(NamedTuple):
    """How far a share group is with a partition."""

    start: int
    lag: int
