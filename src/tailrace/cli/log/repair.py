"""`tailrace log repair`: what is damaged in a stopped broker's logs; with `--yes` a repair of those without replicas.

A log that has other replicas is left to its broker, which fetches it from them. The metadata log is never repaired: a
lost record there may be a topic, or a setting that somebody relies on. A torn tail is no damage: the next start
truncates it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from tailrace.cli.failure import Failed
from tailrace.cli.log.folders import PartitionFolder, metadata_records
from tailrace.cli.output import print_json
from tailrace.cluster.records import PartitionAdded, PartitionWidened
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.log.directory.meta import CLEAN_NAME
from tailrace.log.file_names import DAMAGED_NAME
from tailrace.log.repair import Loss, examine, repair
from tailrace.model.ids import TopicPartition
from tailrace.model.topics import METADATA_PARTITION
from tailrace.ports import Ports
from tailrace.ports.disk import Disk, InUse

ASIDE_NAME = "set-aside"  # in the data directory; a further repair gets a number


class Found(NamedTuple):
    folder: PartitionFolder
    losses: list[Loss]
    refusal: str  # why it is not repaired here; "" if it can be


def run_repair(ports: Ports, data_dir: str, folders: Sequence[PartitionFolder], *, yes: bool, as_json: bool) -> None:
    try:
        lock = ports.disk.lock(f"{data_dir}/.lock", f"process {ports.host.process_id()} (tailrace log repair)")
    except InUse as error:
        raise Failed(f"{data_dir} is in use by {error.owner}.\nStop the broker first.") from None
    try:
        found = _examine(ports.disk, data_dir, folders)
        repairable = [one for one in found if not one.refusal]
        aside = _free_name(ports.disk, f"{data_dir}/{ASIDE_NAME}")
        if yes and repairable:
            asyncio.run(_repair(ports.disk, repairable, aside))
    finally:
        lock.release()
    if as_json:
        print_json(
            [
                {
                    "topic": one.folder.topic,
                    "partition": one.folder.key.partition,
                    "losses": [asdict(loss) for loss in one.losses],
                    "refusal": one.refusal or None,
                    "repaired": yes and not one.refusal,
                    "aside": f"{aside}/{one.folder.key}" if yes and not one.refusal else None,
                }
                for one in found
            ]
        )
    else:
        _show(found, aside, yes=yes)
    if any(one.refusal for one in found) or (found and not yes):
        raise Failed("there is damage that was not repaired." if yes else "there is damage. Nothing was changed.")


async def _repair(disk: Disk, found: Sequence[Found], aside: str) -> None:
    for one in found:
        await repair(disk, one.folder.path, one.losses, f"{aside}/{one.folder.key}")


def _examine(disk: Disk, data_dir: str, folders: Sequence[PartitionFolder]) -> list[Found]:
    checkpoints = load_checkpoints(disk, data_dir)
    is_clean = disk.exists(f"{data_dir}/{CLEAN_NAME}")
    replicas = _replicas(disk, data_dir)
    found = []
    for folder in folders:
        losses = examine(disk, folder.path)
        marked = disk.exists(f"{folder.path}/{DAMAGED_NAME}")
        if losses and checkpoints is not None and not is_clean and not marked:
            point = checkpoints[folder.key].recovery.offset if folder.key in checkpoints else 0
            if losses[-1].is_tail and losses[-1].first >= point:
                losses.pop()  # a torn tail
        if losses:
            found.append(Found(folder, losses, _refusal(folder, len(replicas.get(folder.key, ())))))
    return found


def _refusal(folder: PartitionFolder, replicas: int) -> str:
    if folder.key == METADATA_PARTITION:
        return "the metadata log is not repaired: restore its folder from a backup"
    if replicas > 1:
        return f"it has {replicas} replicas: start the broker, which fetches it from another one"
    return ""


def _replicas(disk: Disk, data_dir: str) -> dict[TopicPartition, tuple[int, ...]]:
    found = {}
    for record in metadata_records(disk, data_dir):
        if isinstance(record, PartitionAdded | PartitionWidened):
            found[TopicPartition(record.topic_id, record.partition)] = record.replicas
    return found


def _free_name(disk: Disk, path: str) -> str:
    name, number = path, 1
    while disk.exists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _show(found: Sequence[Found], aside: str, *, yes: bool) -> None:
    for one in found:
        print(f"{one.folder.topic} partition {one.folder.key.partition}")
        for loss in one.losses:
            print(f"  {loss}")
        if one.refusal:
            print(f"  not repaired: {one.refusal}")
        elif yes:
            print(f"  repaired; the damaged files are in {aside}/{one.folder.key}")
    if not found:
        print("No damage found.")
    elif not yes and any(not one.refusal for one in found):
        print("--yes copies the damaged files aside, and keeps everything else in its place, with its offsets.")
        print("What is listed above is lost then. Restore a backup instead, if there is one.")
