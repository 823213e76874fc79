"""A controller with a log in memory; every record is encoded and decoded on its way."""

from collections.abc import Callable
from typing import TypeVar, cast

from tailrace.cluster.brokers import Broker
from tailrace.cluster.controller import Controller, NewTopic
from tailrace.cluster.features import SUPPORTED_FEATURES, Features, record_version
from tailrace.cluster.image import Image
from tailrace.cluster.records import RECORD_KINDS, MetadataRecord
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId, Id
from tailrace.model.proposal import Proposal
from tailrace.wire.stored import decode_record, encode_record

T = TypeVar("T")


def numbered(number: int) -> Id:
    return Id(number.to_bytes(16, "big"))


def disk_of(broker: int) -> Id:
    return numbered(1000 + broker)


def registration(
    broker: int,
    *,
    rack: str | None = None,
    disk: int = 0,
    port: int = 9000,
    life: int = 1,
    features: Features = SUPPORTED_FEATURES,
) -> Broker:
    return Broker(
        id=BrokerId(broker),
        directory=numbered(disk) if disk else disk_of(broker),
        incarnation=numbered(life),
        endpoints={"kafka": Address(f"h{broker}", port + broker)} if port else {},
        peer_host=f"p{broker}",
        peer_port=7000 + broker,
        rack=rack,
        fenced=port == 0,
        features=features,
    )


class Cluster:
    def __init__(
        self, *brokers: int, racks: tuple[str | None, ...] = (), features: Features = SUPPORTED_FEATURES
    ) -> None:
        """Brokers that serve; `racks` says where each stands, in the same order; `features` what all support."""
        self.controller = Controller(features)
        self.log: list[bytes] = []
        self._next = 0
        self.write(lambda controller: controller.found())
        for position, broker in enumerate(brokers or (1,)):
            one = registration(broker, rack=racks[position] if racks else None, features=features)
            self.write(lambda controller, one=one: controller.register(one))  # type: ignore[misc]

    @property
    def image(self) -> Image:
        return self.controller.image

    def new_id(self) -> Id:
        self._next += 1
        return numbered(self._next)

    def write(self, propose: Callable[[Controller], Proposal[T]]) -> T:
        proposal = propose(self.controller)
        for record in proposal.records:
            raw = encode_record(record, record_version(self.image.level, type(record).__name__))
            self.log.append(raw)
            self.controller.replay(cast(MetadataRecord, decode_record(RECORD_KINDS, raw)))
        return proposal.answer

    def create(self, name: str, partitions: int = 1, factor: int = 1, **settings: str) -> Id:
        wanted = NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=factor,
            settings={key.replace("_", "."): value for key, value in settings.items()},
        )
        return self.write(lambda controller: controller.create_topic(wanted, self.new_id)).id

    def replayed(self) -> Controller:
        fresh = Controller()
        for raw in self.log:
            fresh.replay(cast(MetadataRecord, decode_record(RECORD_KINDS, raw)))
        return fresh
