"""Administration: brokers, the metadata quorum, feature levels, disks, leader elections, and settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cache, partial
from typing import Final, NamedTuple

from tailrace.broker.control.cluster_changes import ClusterChanges
from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.control.peer_requests import ControllerRequests, ServeForwarded
from tailrace.broker.control.preferred_elections import PreferredElections
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.services.broker_facts import BrokerFact, broker_facts
from tailrace.cluster.brokers import Broker, Endpoints
from tailrace.cluster.controller import Controller
from tailrace.cluster.feature_updates import FeatureUpdate
from tailrace.cluster.features import Features, may_forward
from tailrace.cluster.image import Resource
from tailrace.cluster.settings import CHANGEABLE_BROKER_SETTINGS, SettingChange
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault, InvalidRequest, UnknownTopic
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import GROUP_SETTINGS
from tailrace.model.ids import NO_BROKER, BrokerId, Epoch, Id, PartitionName
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings, kind_of, row, rows
from tailrace.model.topics import TOPIC_SETTINGS, TopicSetting, check_topic_name, text_of
from tailrace.ports import Clock, Ports
from tailrace.raft.tracking import PeerProgress
from tailrace.wire.messages.peers.forward import Forward

__all__ = [
    "Admin",
    "Alteration",
    "ClusterView",
    "DiskUse",
    "QuorumView",
    "ReplicaView",
    "Resource",
    "SettingChange",
    "SettingSource",
    "SettingValue",
    "SettingView",
]

ALL_BROKERS: Final = ""  # the name that stands for all brokers together
UNKNOWN: Final = -1
NEVER: Final = float("-inf")


class SettingSource(Enum):
    """Where the value of a setting comes from, the one with the highest precedence first."""

    TOPIC = auto()
    GROUP = auto()
    BROKER = auto()  # set at run time, for one broker
    ALL_BROKERS = auto()  # set at run time, for all brokers
    START = auto()  # the broker was started with it
    DEFAULT = auto()


class SettingValue(NamedTuple):
    name: str
    value: str
    source: SettingSource


@frozen
class SettingView:
    name: str
    kind: type
    help: str
    values: Sequence[SettingValue]  # the value in force first, then those it overrides
    read_only: bool = False
    secret: bool = False  # its values are not shown


@frozen
class ReplicaView:
    broker: BrokerId
    directory: Id
    log_end: int
    last_fetch_ms: int  # by the leader's wall clock; -1: it has not fetched since this leader was elected
    last_caught_up_ms: int


@frozen
class QuorumView:
    leader: BrokerId
    epoch: Epoch
    high_watermark: int
    voters: tuple[ReplicaView, ...]
    observers: tuple[ReplicaView, ...]
    brokers: tuple[Broker, ...]  # the brokers of the voters, with their addresses


@frozen
class DiskUse:
    folder: str
    total_bytes: int
    free_bytes: int


@frozen
class FeaturesView:
    supported: Features  # the levels that this broker supports
    finalized: Mapping[str, int]  # the levels that the cluster has been raised to
    offset: int  # of the metadata log, up to which this view is complete


@frozen
class ClusterView:
    cluster_id: str
    controller: BrokerId
    me: BrokerId


class Admin:
    def __init__(
        self,
        hosted: HostedPartitions,
        metadata: Partition,
        controller: ControllerRole,
        changes: ClusterChanges,
        progress: MetadataProgress,
        elections: PreferredElections,
        calls: ControllerCalls,
        requests: ControllerRequests,
        ports: Ports,
        settings: Settings,
        features: Features,
        endpoints: Callable[[], Endpoints],
        cluster_id: str,
        me: BrokerId,
    ) -> None:
        self._hosted = hosted
        self._metadata = metadata
        self._controller = controller
        self._changes = changes
        self._progress = progress
        self._elections = elections
        self._calls = calls
        self._requests = requests
        self._ports = ports
        self._settings = settings
        self._features = features
        self._endpoints = endpoints  # where clients reach this broker
        self._cluster_id = cluster_id
        self._me = me
        self._doors: dict[str, Callable[[], Mapping[str, int]]] = {}

    # The doors of this broker

    def show_door(self, listener: str, counters: Callable[[], Mapping[str, int]]) -> None:
        """Show what a door has done since it opened, among the facts of this broker."""
        self._doors[listener] = counters

    def _counters_of_doors(self) -> dict[str, Mapping[str, int]]:
        return {listener: counters() for listener, counters in self._doors.items()}

    # The cluster

    @property
    def is_controller(self) -> bool:
        return self._changes.are_made_here

    async def forward(self, who: Caller, api_key: int, version: int, body: bytes, timeout_s: float) -> bytes:
        """Forward a request of the Kafka protocol to the controller; returns the body of the response."""
        request = Forward(api_key=api_key, api_version=version, body=body, principal=who.principal)
        answer = await self._calls.ask(request, timeout_s)
        return bytes(answer.body)

    def may_forward(self, api_key: int, version: int) -> bool:
        """Whether the controller's release can serve a request; True if the controller is not known yet."""
        controller = self.find_broker(self._controller.controller or NO_BROKER)
        return controller is None or may_forward(controller.features, api_key, version)

    def serve_forwarded_with(self, serve: ServeForwarded) -> None:
        """Serve requests that other brokers forward to this one with `serve`."""
        self._requests.serve_forwarded = serve

    def cluster(self, who: Caller) -> ClusterView:
        return ClusterView(
            cluster_id=self._cluster_id, controller=self._controller.controller or NO_BROKER, me=self._me
        )

    def brokers(self, who: Caller, *, fenced: bool = False) -> Sequence[Broker]:
        """The live brokers; with `fenced`, the fenced ones too."""
        image = self._hosted.image
        return list(image.brokers.values()) if fenced else [image.brokers[one] for one in image.live]

    def find_broker(self, broker: BrokerId) -> Broker | None:
        return self._hosted.image.brokers.get(broker)

    def features(self, who: Caller) -> FeaturesView:
        return FeaturesView(
            supported=self._features, finalized=self._hosted.image.features, offset=self._metadata.high_watermark
        )

    async def raise_features(self, who: Caller, updates: Sequence[FeatureUpdate], *, validate_only: bool) -> None:
        """Raise feature levels, on the controller. A raise cannot be undone."""

        def propose(controller: Controller) -> Proposal[None]:
            proposal = controller.update_features(updates)
            return Proposal(None) if validate_only else proposal

        await self._controller.active.write(propose)
        await self._progress.settled()

    async def quorum(self, who: Caller) -> QuorumView:
        """The quorum of the metadata log; only its leader, the controller, knows it."""
        await self._controller.active.settled()  # makes sure that a majority still follows this controller
        partition, clock, brokers = self._metadata, self._ports.clock, self._hosted.image.brokers
        peers = {peer.replica: peer for peer in partition.replica.peers()}
        observers = sorted((peer for peer in peers.values() if not peer.votes), key=lambda peer: peer.replica)
        return QuorumView(
            leader=self._me,
            epoch=partition.epoch,
            high_watermark=partition.high_watermark,
            voters=tuple(
                _leader_view(partition, clock) if voter == partition.me else _replica_view(peers[voter], clock)
                for voter in partition.replica.voters
            ),
            observers=tuple(_replica_view(peer, clock) for peer in observers),
            brokers=tuple(brokers[voter.broker] for voter in partition.replica.voters if voter.broker in brokers),
        )

    def disk(self, who: Caller) -> DiskUse:
        disk, folder = self._ports.disk, self._settings.data_dir
        return DiskUse(folder=folder, total_bytes=disk.total_bytes(folder), free_bytes=disk.free_bytes(folder))

    def partition_sizes(self, who: Caller, topic: str, numbers: Iterable[int]) -> Iterator[tuple[int, int, str]]:
        """Number, size in bytes and damage of those partitions of a topic that this broker hosts."""
        partitions = self._hosted.by_number(topic)
        for number in numbers:
            if 0 <= number < len(partitions) and (partition := partitions[number]) is not None:
                damage = partition.member.damage
                yield number, partition.log.size_bytes, "" if damage is None else str(damage)

    async def elect_preferred(
        self, who: Caller, partitions: Iterable[PartitionName], within_s: float
    ) -> dict[PartitionName, Fault | None]:
        """Elect the preferred leaders of partitions; for each its fault, or None."""
        return await self._elections.hold(partitions, within_s)

    # Settings

    def resources(self, who: Caller) -> dict[Resource, list[str]]:
        """The names of all resources that have settings."""
        image = self._hosted.image
        return {
            Resource.TOPIC: list(image.topics),
            Resource.BROKER: [str(broker) for broker in image.live],
            Resource.GROUP: list(image.group_settings),
        }

    def settings_of(self, who: Caller, kind: int, name: str) -> Iterator[SettingView]:
        """All settings of a topic, of this broker, of all brokers together (an empty name), or of a group."""
        match _resource(kind, name):
            case Resource.GROUP:
                return self._group_settings(name)
            case Resource.TOPIC:
                topic = self._hosted.image.topics.get(name)
                if topic is None:
                    check_topic_name(name)
                    raise UnknownTopic(f"there is no topic {name}")
                return self.topic_settings(topic.settings)
            case Resource.BROKER if name == ALL_BROKERS:
                return self._all_brokers_settings()
            case Resource.BROKER:
                if name != str(self._me):
                    raise InvalidRequest(
                        f"this is broker {self._me}, not {name!r}: a broker describes its own settings only; "
                        "an empty name means those of all brokers"
                    )
                return self._broker_settings()

    def topic_settings(self, own: Mapping[str, str]) -> Iterator[SettingView]:
        """All settings of a topic whose own settings are `own`."""
        for setting in TOPIC_SETTINGS.values():
            yield SettingView(
                name=setting.name, kind=setting.kind, help=setting.help, values=self._topic_values(own, setting)
            )

    def _broker_settings(self) -> Iterator[SettingView]:
        """This broker's settings, and what else it shows of itself; a fact is shown in place of its setting."""
        voters = [voter.broker for voter in self._metadata.replica.voters]
        facts = {
            fact.name: fact
            for fact in broker_facts(
                self._settings,
                self._me,
                self._endpoints(),
                voters,
                self._hosted.image.brokers,
                self._counters_of_doors(),
            )
        }
        for name, one in rows().items():
            if name not in facts:
                yield SettingView(
                    name=name,
                    kind=kind_of(one),
                    help=row(one).help,
                    values=list(self._broker_values(name)),
                    read_only=name not in CHANGEABLE_BROKER_SETTINGS,
                    secret=row(one).secret,
                )
        for fact in facts.values():
            yield _view_of(fact)

    def _all_brokers_settings(self) -> Iterator[SettingView]:
        """The settings that were changed for all brokers, without defaults."""
        for name, value in self._hosted.image.broker_settings.get(ALL_BROKERS, {}).items():
            one = rows()[name]
            values = [SettingValue(name, value, SettingSource.ALL_BROKERS)]
            yield SettingView(name=name, kind=kind_of(one), help=row(one).help, values=values)

    def _group_settings(self, group_id: str) -> Iterator[SettingView]:
        """All settings of a group; the group need not exist."""
        own = self._hosted.image.group_settings.get(group_id, {})
        for name, setting in GROUP_SETTINGS.items():
            values = [SettingValue(name, text_of(setting.default), SettingSource.DEFAULT)]
            if setting.broker is not None:
                values = list(self._broker_values(setting.broker))
            if name in own:
                values.insert(0, SettingValue(name, own[name], SettingSource.GROUP))
            yield SettingView(name=name, kind=setting.kind, help=setting.row.help, values=values)

    def _topic_values(self, own: Mapping[str, str], setting: TopicSetting) -> list[SettingValue]:
        values = []
        if setting.name in own:
            values.append(SettingValue(setting.name, own[setting.name], SettingSource.TOPIC))
        if setting.broker is None:
            values.append(SettingValue(setting.name, text_of(setting.default), SettingSource.DEFAULT))
        else:
            values += self._broker_values(_kafka_name(setting.broker))
        return values

    def _broker_values(self, name: str) -> Iterator[SettingValue]:
        told = self._hosted.image.broker_settings
        for owner, source in ((str(self._me), SettingSource.BROKER), (ALL_BROKERS, SettingSource.ALL_BROKERS)):
            if name in told.get(owner, {}):
                yield SettingValue(name, told[owner][name], source)
        one = rows()[name]
        started_with = getattr(self._settings, one.name)
        if started_with != one.default:
            yield SettingValue(name, text_of(started_with), SettingSource.START)
        yield SettingValue(name, text_of(one.default), SettingSource.DEFAULT)

    async def alter_settings(
        self, who: Caller, wanted: Sequence["Alteration"], *, validate_only: bool
    ) -> list[Fault | None]:
        """Change settings of topics, brokers and groups on the controller; for each alteration its fault, or None."""
        changes = [partial(_alter, one) for one in wanted]
        return await self._changes.each(changes, validate_only=validate_only)


@frozen
class Alteration:
    """A resource, and the changes to its settings."""

    kind: int
    name: str
    changes: Sequence[SettingChange] | Mapping[str, str] | Fault  # a mapping replaces all settings; a fault refuses


def _alter(wanted: Alteration, controller: Controller) -> Proposal[None]:
    resource = _resource(wanted.kind, wanted.name)
    if resource is Resource.BROKER and wanted.name:
        known = [str(broker) for broker in sorted(controller.image.brokers)]
        if wanted.name not in known:
            raise InvalidRequest(
                f"there is no broker {wanted.name!r}, only {', '.join(known)}; an empty name means all brokers"
            )
    if isinstance(wanted.changes, Fault):
        raise wanted.changes
    if isinstance(wanted.changes, Mapping):
        return controller.replace_settings(resource, wanted.name, wanted.changes)
    return controller.change_settings(resource, wanted.name, wanted.changes)


def _resource(kind: int, name: str) -> Resource:
    if kind not in tuple(Resource):
        known = "topics (2), brokers (4) and groups (32)"
        raise InvalidRequest(f"resource type {kind} has no settings, only {known} have")
    if kind == Resource.GROUP and not name:
        raise InvalidRequest("GroupId can't be empty.")
    return Resource(kind)


def _view_of(fact: BrokerFact) -> SettingView:
    source = SettingSource.DEFAULT if fact.is_default else SettingSource.START
    value = SettingValue(fact.name, fact.value, source)
    return SettingView(name=fact.name, kind=fact.kind, help=fact.help, values=[value], read_only=True)


@cache
def _kafka_name(field: str) -> str:
    return next(name for name, one in rows().items() if one.name == field)


def _leader_view(partition: Partition, clock: Clock) -> ReplicaView:
    now_ms = clock.wall_ms()
    return ReplicaView(
        broker=partition.me.broker,
        directory=partition.me.directory,
        log_end=partition.log.end,
        last_fetch_ms=now_ms,
        last_caught_up_ms=now_ms,
    )


def _replica_view(peer: PeerProgress, clock: Clock) -> ReplicaView:
    fetched = peer.end >= 0
    return ReplicaView(
        broker=peer.replica.broker,
        directory=peer.replica.directory,
        log_end=peer.end,
        last_fetch_ms=_wall_ms(peer.fetched, clock) if fetched else UNKNOWN,
        last_caught_up_ms=_wall_ms(peer.caught_up, clock) if fetched else UNKNOWN,
    )


def _wall_ms(at: float, clock: Clock) -> int:
    """A time of the monotonic clock as wall time."""
    return UNKNOWN if at == NEVER else clock.wall_ms() - round((clock.monotonic() - at) * 1000)
