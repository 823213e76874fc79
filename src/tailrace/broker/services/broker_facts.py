"""What a broker shows of itself under Kafka's names, beside its settings.

Tools that describe a broker (kafka-configs, AKHQ, kafka-ui) look for names that are no settings here: Kafka configures
listeners where Tailrace has a host and a port, and has further units for some times. These facts are derived from the
settings and the cluster's metadata. They are read-only, and a fact that is not known, or that its unit cannot express
exactly, is left out. As in Kafka, hours and minutes are those that the broker was started with: a change at run time
is one of `log.retention.ms` alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from tailrace.cluster.brokers import Broker, Endpoints
from tailrace.cluster.settings import LIST_SETTINGS
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId
from tailrace.model.listeners import KAFKA_LISTENER, security_protocol
from tailrace.model.settings import Settings
from tailrace.model.topics import TOPIC_SETTINGS, text_of

DOOR_PREFIX: Final = "door."
NO_LIMIT: Final = -1
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

# A setting in milliseconds, by its field, in Kafka's other units.
OTHER_UNITS: Final = (
    ("log.retention.hours", "log_retention_ms", HOUR_MS, "log.retention.ms in hours."),
    ("log.retention.minutes", "log_retention_ms", MINUTE_MS, "log.retention.ms in minutes."),
    ("log.roll.hours", "log_segment_ms", HOUR_MS, "log.roll.ms in hours."),
)

# Settings that only topics have here, under the names of Kafka's defaults for them.
TOPIC_DEFAULTS: Final = MappingProxyType(
    {
        "log.cleanup.policy": "cleanup.policy",
        "log.index.size.max.bytes": "segment.index.bytes",
        "log.preallocate": "preallocate",
        "log.roll.jitter.ms": "segment.jitter.ms",
        "log.segment.delete.delay.ms": "file.delete.delay.ms",
        "unclean.leader.election.enable": "unclean.leader.election.enable",
    }
)


@frozen
class BrokerFact:
    name: str
    value: str
    kind: type  # list: separated by commas
    help: str
    is_default: bool = False  # else it follows from how the broker was started


def broker_facts(
    settings: Settings,
    me: BrokerId,
    endpoints: Endpoints,
    voters: Sequence[BrokerId],
    brokers: Mapping[BrokerId, Broker],
    doors: Mapping[str, Mapping[str, int]],
) -> Iterator[BrokerFact]:
    """The facts of broker `me`; `voters` are those of the metadata quorum, in order; `doors` are the counters of each
    open door, by listener."""
    roles = "broker,controller" if me in voters else "broker"
    yield BrokerFact(name="broker.id", value=str(me), kind=int, help="The broker id.")
    yield BrokerFact(name="node.id", value=str(me), kind=int, help="The broker id.")
    yield BrokerFact(
        name="process.roles", value=roles, kind=list, help="controller: this broker votes on the cluster metadata."
    )
    yield from _quorum(voters, brokers)
    yield from _listeners(settings, endpoints)
    yield from _directories(settings)
    yield from _other_units(settings)
    yield from _topic_defaults()
    for listener, counters in doors.items():
        if listener in endpoints:
            yield _door(listener, endpoints[listener], counters)


def _door(listener: str, where: Address, counters: Mapping[str, int]) -> BrokerFact:
    """What `tailrace doors` shows. Kafka's protocol has no request for it, and every tool shows a broker's settings."""
    value = ",".join([f"endpoint={where}", *(f"{name}={count}" for name, count in counters.items())])
    help = f"The {listener} door: where it listens, and what it has done since it opened."
    return BrokerFact(name=f"{DOOR_PREFIX}{listener}", value=value, kind=list, help=help)


def _quorum(voters: Sequence[BrokerId], brokers: Mapping[BrokerId, Broker]) -> Iterator[BrokerFact]:
    """Left out while the metadata does not have the address of every voter."""
    if voters and all(voter in brokers for voter in voters):
        found = (brokers[voter] for voter in voters)
        value = ",".join(f"{one.id}@{Address(one.peer_host, one.peer_port)}" for one in found)
        help = "The voters of the cluster metadata, with their addresses for other brokers."
        yield BrokerFact(name="controller.quorum.voters", value=value, kind=list, help=help)


def _listeners(settings: Settings, endpoints: Endpoints) -> Iterator[BrokerFact]:
    if KAFKA_LISTENER not in endpoints:
        return
    advertised = endpoints[KAFKA_LISTENER]
    protocol = security_protocol(settings.listener_security_protocol_map, KAFKA_LISTENER)
    yield BrokerFact(
        name="listeners",
        value=f"{protocol}://{Address(settings.host, advertised.port)}",
        kind=list,
        help="Where the broker listens for Kafka clients.",
        is_default=_are_defaults(settings, "host", "kafka_port"),
    )
    yield BrokerFact(
        name="advertised.listeners",
        value=f"{protocol}://{advertised}",
        kind=list,
        help="Where Kafka clients connect to.",
        is_default=_are_defaults(settings, "host", "kafka_port", "advertised_host"),
    )


def _directories(settings: Settings) -> Iterator[BrokerFact]:
    value, help, is_default = settings.data_dir, "The directory for the logs.", _are_defaults(settings, "data_dir")
    yield BrokerFact(name="log.dir", value=value, kind=str, help=help, is_default=is_default)
    yield BrokerFact(name="log.dirs", value=value, kind=list, help=help, is_default=is_default)


def _other_units(settings: Settings) -> Iterator[BrokerFact]:
    for name, field, unit_ms, help in OTHER_UNITS:
        value_ms: int = getattr(settings, field)
        if value_ms == NO_LIMIT or value_ms % unit_ms == 0:
            value = str(value_ms if value_ms == NO_LIMIT else value_ms // unit_ms)
            yield BrokerFact(name=name, value=value, kind=int, help=help, is_default=_are_defaults(settings, field))


def _topic_defaults() -> Iterator[BrokerFact]:
    for name, topic_name in TOPIC_DEFAULTS.items():
        row = TOPIC_SETTINGS[topic_name]
        kind = list if topic_name in LIST_SETTINGS else row.kind
        yield BrokerFact(name=name, value=text_of(row.default), kind=kind, help=row.help, is_default=True)


def _are_defaults(settings: Settings, *names: str) -> bool:
    fields: Mapping[str, Any] = Settings.__dataclass_fields__
    return all(getattr(settings, name) == fields[name].default for name in names)
