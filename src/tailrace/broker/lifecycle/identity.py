"""Which broker of which cluster a data directory is: as it says itself; a fresh one founds a cluster, or joins one."""

from tailrace.broker.lifecycle.cluster_join import Joiner
from tailrace.cluster.features import Features
from tailrace.log.directory.meta import FirstVoter, Meta, load_meta, store_meta
from tailrace.model.ids import BrokerId, Id, show_id
from tailrace.model.settings import Settings
from tailrace.ports import Ports


class WrongDirectory(Exception):
    """Why a data directory cannot be this broker's, in a sentence for the person who started it."""


async def identify(ports: Ports, settings: Settings, incarnation: Id, advertised_host: str, features: Features) -> Meta:
    disk, folder = ports.disk, settings.data_dir
    meta, wanted = load_meta(disk, folder), settings.broker_id

    def joiner(directory: Id) -> Joiner:
        return Joiner(
            ports=ports,
            settings=settings,
            directory=directory,
            incarnation=incarnation,
            advertised_host=advertised_host,
            features=features,
        )

    if meta is None:
        if disk.exists(f"{folder}/votes"):
            raise WrongDirectory(
                f"{folder} holds a broker's logs, but its meta.properties is missing.\n"
                "Put it back; or give this broker another place with --data-dir."
            )
        meta = await joiner(ports.random.new_id()).join() if settings.join else _found(ports, wanted)
        await store_meta(disk, folder, meta)
    elif wanted not in (-1, meta.broker_id):
        raise WrongDirectory(
            f"{folder} belongs to broker {meta.broker_id}, not to {wanted}.\n"
            "Leave out --broker-id, or give this broker another place with --data-dir."
        )
    elif settings.join:
        await joiner(meta.directory_id).check(meta)
    return meta


def _found(ports: Ports, wanted: int) -> Meta:
    """A cluster of one's own."""
    broker_id, directory_id = BrokerId(1 if wanted < 0 else wanted), ports.random.new_id()
    return Meta(
        cluster_id=show_id(ports.random.new_id()),
        broker_id=broker_id,
        directory_id=directory_id,
        voters=(FirstVoter(broker_id, directory_id),),
    )
