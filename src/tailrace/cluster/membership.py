"""How brokers come and go: joining, registering, being fenced.

A broker is a number and a disk. Who brings a known disk gets its number again, however often it asks. A number whose
broker is alive belongs to that broker's disk alone; when it is fenced, the number may go to a new disk, because
machines are replaced. The new disk holds nothing, and votes for nothing until it is added: see `raft.voters`.
"""

from itertools import count

from tailrace.cluster.brokers import Broker, registered
from tailrace.cluster.image import Image
from tailrace.cluster.records import BrokerFenced, BrokerRegistered
from tailrace.model.addresses import Address
from tailrace.model.faults import DuplicateBroker
from tailrace.model.ids import BrokerId, Id
from tailrace.model.proposal import Proposal


def join(
    image: Image, directory: Id, wanted: BrokerId | None, incarnation: Id, peer: Address, rack: str | None
) -> Proposal[BrokerId]:
    known = _with_disk(image, directory)
    if known is None:
        number = next_free(image) if wanted is None else wanted
    else:
        number = known.id
        _check_wish(known, wanted)
    if known is not None and known.incarnation == incarnation:
        return Proposal(number)  # asked again: the first answer was lost
    record = BrokerRegistered(
        broker_id=number,
        directory_id=directory,
        incarnation_id=incarnation,
        host=peer.host,
        kafka_port=0,
        peer_host=peer.host,
        peer_port=peer.port,
        rack=rack,
    )
    _check_number(image, record)
    return Proposal(number, [record])


def register(image: Image, record: BrokerRegistered) -> Proposal[None]:
    _check_number(image, record)
    if image.brokers.get(BrokerId(record.broker_id)) == registered(record):
        return Proposal(None)
    return Proposal(None, [record])


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


def _check_number(image: Image, record: BrokerRegistered) -> None:
    known = image.brokers.get(BrokerId(record.broker_id))
    if known is not None and not known.fenced and known.directory != record.directory_id:
        there, here = Address(known.host, known.kafka_port), Address(record.peer_host, record.peer_port)
        other = f"peers reach at {here}" if here.port else f"asks from {here.host}"  # not listening yet: it has no port
        raise DuplicateBroker(
            f"broker {known.id} is alive at {there} with another data directory; the one that {other} "
            f"cannot be broker {known.id} too: leave out --broker-id, or stop the other one first"
        )
