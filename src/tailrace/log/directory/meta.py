"""The identity of a data directory, and how the previous run ended.

`meta.properties`, in Kafka's format, has the ids of the cluster, the broker and the directory: the same broker with
another disk is another voter. It also has the port for peers and the metadata voters that this broker knew last, so
that brokers find each other again after the whole cluster was stopped.

`clean-shutdown` exists only while the broker is not running, and holds the boot id of the machine at that shutdown. It
is durably removed before anything is written, so a crash cannot be taken for a clean shutdown. `boot` holds the boot id
of the last start.
"""

from typing import Final, NamedTuple

from tailrace.log.directory.state_file import Unreadable
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id, parse_id, show_id
from tailrace.ports.disk import Disk, read_file, replace_file

META_NAME: Final = "meta.properties"
CLEAN_NAME: Final = "clean-shutdown"
BOOT_NAME: Final = "boot"
VERSION: Final = "1"


class FirstVoter(NamedTuple):
    """A voter of the metadata quorum and its last known address; the host is empty for this broker itself."""

    broker_id: BrokerId
    directory_id: Id
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return f"{self.broker_id}@{show_id(self.directory_id)}@{Address(self.host, self.port)}"


@frozen
class Meta:
    cluster_id: str
    broker_id: BrokerId
    directory_id: Id
    peer_port: int = 0  # 0: not chosen yet
    voters: tuple[FirstVoter, ...]


def load_meta(disk: Disk, folder: str) -> Meta | None:
    """None in a fresh directory. Raises `Unreadable` for a file that is not valid: the broker must not start then."""
    path = f"{folder}/{META_NAME}"
    if not disk.exists(path):
        return None
    lines = read_file(disk, path).decode(errors="replace").splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    if values.get("version") != VERSION:
        raise Unreadable(f"{path} has version {values.get('version')}; this release reads version {VERSION}")
    try:
        return Meta(
            cluster_id=values["cluster.id"],
            broker_id=BrokerId(int(values["node.id"])),
            directory_id=parse_id(values["directory.id"]),
            peer_port=int(values["peer.port"]),
            voters=tuple(map(_parse_voter, values["metadata.voters"].split(","))),
        )
    except (KeyError, ValueError) as error:
        raise Unreadable(f"{path} has a missing or invalid value: {error}") from error


def _parse_voter(text: str) -> FirstVoter:
    broker_id, directory_id, address = text.split("@", 2)
    host, _, port = address.rpartition(":")
    return FirstVoter(BrokerId(int(broker_id)), parse_id(directory_id), host.strip("[]"), int(port))


async def store_meta(disk: Disk, folder: str, meta: Meta) -> None:
    text = (
        f"version={VERSION}\n"
        f"cluster.id={meta.cluster_id}\n"
        f"node.id={meta.broker_id}\n"
        f"directory.id={show_id(meta.directory_id)}\n"
        f"peer.port={meta.peer_port}\n"
        f"metadata.voters={','.join(map(str, meta.voters))}\n"
    )
    await replace_file(disk, f"{folder}/{META_NAME}", text.encode())


async def take_clean_marker(disk: Disk, folder: str) -> bool:
    """Whether the last shutdown was clean; removes the marker, so a crash from now on counts as unclean."""
    path = f"{folder}/{CLEAN_NAME}"
    if not disk.exists(path):
        return False
    disk.remove(path)
    await disk.sync_dir(folder)
    return True


async def write_clean_marker(disk: Disk, folder: str, boot_id: str) -> None:
    await replace_file(disk, f"{folder}/{CLEAN_NAME}", f"{boot_id}\n".encode())


async def exchange_boot_id(disk: Disk, folder: str, boot_id: str) -> bool:
    """Whether the machine was not rebooted since the last start with this directory; stores the current boot id."""
    path = f"{folder}/{BOOT_NAME}"
    last = read_file(disk, path).decode(errors="replace").strip() if disk.exists(path) else ""
    if last != boot_id:
        await replace_file(disk, path, f"{boot_id}\n".encode())
    return last == boot_id
