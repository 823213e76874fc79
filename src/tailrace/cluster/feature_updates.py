"""How feature levels change: where a new cluster starts, and the raises that somebody asks for.

Nothing is raised unasked. A raise is refused while a registered broker does not support the level, and the refusal
names every such broker and says what to do. Lowering a level is always refused; see `cluster.features`.

`share.version`, which Kafka's tools show, follows metadata.version: it is 1 as soon as that allows share groups.
"""

from collections.abc import Iterator, Mapping, Sequence

from tailrace.cluster.brokers import Broker
from tailrace.cluster.features import (
    METADATA_VERSION,
    SHARE_GROUPS_LEVEL,
    SHARE_VERSION,
    Features,
    level_range,
    release_of,
)
from tailrace.cluster.image import Image
from tailrace.cluster.records import FeatureRaised
from tailrace.model.faults import InvalidUpdateVersion
from tailrace.model.frozen import frozen
from tailrace.model.proposal import Proposal


@frozen
class FeatureUpdate:
    """A level that somebody asks for."""

    name: str
    level: int
    may_lower: bool = False  # a downgrade was asked for, safe or not


def found(image: Image, supported: Features) -> Proposal[None]:
    """The levels of a cluster that has none yet: the newest that the controller and all registered brokers support."""
    if image.features:
        return Proposal(None)
    newest: dict[str, int] = {}
    for name, levels in supported.items():
        lasts = [level_range(broker.features, name).last for broker in image.brokers.values()]
        newest[name] = min([levels.last, *lasts])
    if newest[METADATA_VERSION] < SHARE_GROUPS_LEVEL:
        newest.pop(SHARE_VERSION, None)
    return Proposal(None, [FeatureRaised(name=name, level=level) for name, level in newest.items()])


def update(image: Image, supported: Features, updates: Sequence[FeatureUpdate]) -> Proposal[None]:
    """Raise features, all or none; `InvalidUpdateVersion` says why not."""
    wanted = {one.name: one.level for one in updates}
    metadata_version = wanted.get(METADATA_VERSION, image.level)
    if metadata_version >= SHARE_GROUPS_LEVEL and SHARE_VERSION not in wanted:
        updates = [*updates, FeatureUpdate(name=SHARE_VERSION, level=level_range(supported, SHARE_VERSION).last)]
    for one in updates:
        _check(image, supported, one)
        if one.name == SHARE_VERSION and one.level and metadata_version < SHARE_GROUPS_LEVEL:
            raise InvalidUpdateVersion(
                f"{SHARE_VERSION} {one.level} needs {METADATA_VERSION} {SHARE_GROUPS_LEVEL}: raise that"
            )
    return Proposal(None, [FeatureRaised(name=one.name, level=one.level) for one in updates if _rises(image, one)])


def raisable(image: Image, supported: Features) -> Mapping[str, int]:
    """The features that could be raised if somebody asked for it, each with the newest level."""
    newest = {name: levels.last for name, levels in supported.items()}
    return {
        name: level
        for name, level in newest.items()
        if image.features.get(name, 0) < level and not list(unready(image, name, level))
    }


def unready(image: Image, name: str, level: int) -> Iterator[str]:
    """For each registered broker that does not support a level: which one, why, and what to do."""
    for broker in sorted(image.brokers.values(), key=lambda one: one.id):
        if level not in level_range(broker.features, name):
            yield _unready(broker, name, level)


def _unready(broker: Broker, name: str, level: int) -> str:
    levels = level_range(broker.features, name)
    release = f"tailrace {release_of(level)}" if name == METADATA_VERSION else "a release that supports it"
    if not broker.fenced:
        return f"broker {broker.id} supports {name} {levels}: restart it with {release}"
    return (
        f"broker {broker.id}, which is fenced, supports {name} {levels}: start it with {release} "
        f"(if its machine is gone, start a new broker with --broker-id {broker.id} and an empty data directory)"
    )


def _rises(image: Image, one: FeatureUpdate) -> bool:
    return one.level > image.features.get(one.name, 0)


def _check(image: Image, supported: Features, one: FeatureUpdate) -> None:
    if one.name not in supported:
        raise InvalidUpdateVersion(f"there is no feature {one.name}; there are {', '.join(supported)}")
    now, levels = image.features.get(one.name, 0), supported[one.name]
    if one.level < now:
        raise InvalidUpdateVersion(
            f"{one.name} is at level {now} and cannot be lowered to {one.level}: a raise cannot be undone, "
            "because the logs may hold records that older releases cannot read"
        )
    if one.level == now:
        return
    if one.may_lower:
        raise InvalidUpdateVersion(f"{one.name} is at level {now}: going to {one.level} is an upgrade, not a downgrade")
    if one.level not in levels:
        raise InvalidUpdateVersion(f"the controller supports {one.name} {levels}, not {one.level}")
    waiting = list(unready(image, one.name, one.level))
    if waiting:
        raise InvalidUpdateVersion(f"{one.name} cannot be raised to {one.level} yet: {'; '.join(waiting)}")
