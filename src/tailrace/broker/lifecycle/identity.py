"""The identity of a broker: cluster id, broker id and directory id, from `meta.properties` in its data directory.

An empty data directory gets a new identity: the broker joins a cluster, or founds one of its own.
"""

from tailrace.broker.certificates import Certificates
from tailrace.broker.lifecycle.cluster_join import Joiner
from tailrace.cluster.features import Features
from tailrace.log.directory.meta import FirstVoter, Meta, load_meta, store_meta
from tailrace.model.ids import BrokerId, Id, show_id
from tailrace.model.settings import Settings
from tailrace.ports import Ports


class WrongDirectory(Exception):
    """The data directory cannot belong to this broker; the message tells its operator why."""


async def identify(
    ports: Ports,
    settings: Settings,
    certificates: Certificates,
    incarnation: Id,
    advertised_host: str,
    features: Features,
) -> Meta:
    disk, folder = ports.disk, settings.data_dir
    meta, wanted = load_meta(disk, folder), settings.broker_id

    def joiner(directory: Id) -> Joiner:
        return Joiner(
            ports=ports,
            settings=settings,
            certificates=certificates,
            directory=directory,
            incarnation=incarnation,
            advertised_host=advertised_host,
            features=features,
        )

    if meta is None:
        if disk.exists(f"{folder}/votes"):
            raise WrongDirectory(
                f"{folder} holds a broker's logs, but its meta.properties is missing.\n"
                "Restore that file, or choose another directory with --data-dir."
            )
        meta = await joiner(ports.random.new_id()).join() if settings.join else _found(ports, wanted)
        await store_meta(disk, folder, meta)
    elif wanted not in (-1, meta.broker_id):
        raise WrongDirectory(
            f"{folder} belongs to broker {meta.broker_id}, not to {wanted}.\n"
            "Leave out --broker-id, or choose another directory with --data-dir."
        )
    elif settings.join:
        await joiner(meta.directory_id).check(meta)
    return meta


def _found(ports: Ports, wanted: int) -> Meta:
    """The identity of the first broker of a new cluster."""
    broker_id, directory_id = BrokerId(1 if wanted < 0 else wanted), ports.random.new_id()
    return Meta(
        cluster_id=show_id(ports.random.new_id()),
        broker_id=broker_id,
        directory_id=directory_id,
        voters=(FirstVoter(broker_id, directory_id),),
    )
