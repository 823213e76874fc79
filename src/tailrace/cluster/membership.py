"""How brokers come and go: joining, registering, being fenced.

A broker is a number and a disk. Who brings a known disk gets its number again, however often it asks. A number whose
broker is alive belongs to that broker's disk alone; when it is fenced, the number may go to a new disk, because
machines are replaced. The new disk holds nothing, and votes for nothing until it is added: see `raft.voters`.
A broker that does not support the feature levels in force is refused: see `cluster.features`.
"""

from itertools import count

from tailrace.cluster.brokers import Broker, record_of, registered
from tailrace.cluster.features import Features, level_range, why_refused
from tailrace.cluster.image import Image
from tailrace.cluster.records import BrokerFenced
from tailrace.model.addresses import Address
from tailrace.model.faults import DuplicateBroker, UnsupportedVersion
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id
from tailrace.model.proposal import Proposal


@frozen
class Joining:
    """A data directory that is to become a broker of this cluster."""

    directory: Id
    wanted: BrokerId | None  # the number that it asks for; None: any
    incarnation: Id
    peer: Address
    rack: str | None
    features: Features


def join(image: Image, one: Joining) -> Proposal[BrokerId]:
    known, wanted = _with_disk(image, one.directory), one.wanted
    if known is None:
        number = next_free(image) if wanted is None else wanted
    else:
        number = known.id
        _check_wish(known, wanted)
    if known is not None and known.incarnation == one.incarnation:
        return Proposal(number)  # asked again: the first answer was lost
    broker = Broker(
        id=number,
        directory=one.directory,
        incarnation=one.incarnation,
        endpoints={},
        peer_host=one.peer.host,
        peer_port=one.peer.port,
        rack=one.rack,
        fenced=True,
        features=one.features,
    )
    _check_number(image, broker)
    _check_features(image, broker)
    return Proposal(number, [record_of(broker, image.level)])


def register(image: Image, broker: Broker) -> Proposal[None]:
    _check_number(image, broker)
    _check_features(image, broker)
    record = record_of(broker, image.level)
    return Proposal(None, [] if image.brokers.get(broker.id) == registered(record) else [record])


def fence(image: Image, broker: BrokerId) -> Proposal[None]:
    known = image.brokers.get(broker)
    if known is None or known.fenced:
        return Proposal(None)
    return Proposal(None, [BrokerFenced(broker_id=broker, fenced=True)])


def next_free(image: Image) -> BrokerId:
    return next(BrokerId(number) for number in count(1) if number not in image.brokers)


def _with_disk(image: Image, directory: Id) -> Broker | None:
    return next((broker for broker in image.brokers.values() if broker.directory == directory), None)


def _check_wish(known: Broker, wanted: BrokerId | None) -> None:
    if wanted is not None and wanted != known.id:
        raise DuplicateBroker(
            f"this data directory is broker {known.id}'s, it cannot be broker {wanted}'s; leave out --broker-id"
        )


def _check_features(image: Image, broker: Broker) -> None:
    """A broker that does not support a level in force could read neither the logs nor its peers' messages."""
    for name, level in image.features.items():
        why = why_refused(f"broker {broker.id}", name, level_range(broker.features, name), level)
        if why:
            raise UnsupportedVersion(why)


def _check_number(image: Image, broker: Broker) -> None:
    known = image.brokers.get(broker.id)
    if known is not None and not known.fenced and known.directory != broker.directory:
        there, here = Address(known.host, known.kafka_port), Address(broker.peer_host, broker.peer_port)
        other = f"peers reach at {here}" if here.port else f"asks from {here.host}"  # not listening yet: it has no port
        raise DuplicateBroker(
            f"broker {known.id} is alive at {there} with another data directory; the one that {other} "
            f"cannot be broker {known.id} too: leave out --broker-id, or stop the other one first"
        )
