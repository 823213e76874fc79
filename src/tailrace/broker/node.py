"""A broker: one object that owns its ports, its partitions and the cluster's metadata. Doors are attached from outside.

Life: `start` takes the data directory, recovers the metadata log and folds it, then opens, elects and serves every
partition; `stop` writes everything down, so that the next start scans nothing. In between, `Upkeep` does what time
asks.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from tailrace.broker.coordinator import Coordinator
from tailrace.broker.fetch_sessions import FetchSessions
from tailrace.broker.producer_ids import ProducerIds
from tailrace.broker.replicas import Replicas
from tailrace.broker.upkeep import Upkeep
from tailrace.broker.votes import VoteJournal
from tailrace.cluster.controller import Controller
from tailrace.cluster.records import record_kinds
from tailrace.log.checkpoints import Checkpoint, load_checkpoints, store_checkpoints
from tailrace.log.meta import Meta, load_meta, store_meta, take_clean_marker, write_clean_marker
from tailrace.log.state_file import Unreadable
from tailrace.model.faults import StorageFailed
from tailrace.model.ids import BrokerId, TopicPartition, show_id
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings
from tailrace.model.topics import TopicSettings, metadata_topic, metadata_topic_id
from tailrace.ports import Disk, Ports
from tailrace.ports.disk import InUse, make_lasting_dir
from tailrace.raft.replica import Voter

events: Final = logging.getLogger(__name__)

metadata_partition: Final = TopicPartition(metadata_topic_id, 0)
checkpoints_at_once: Final = 16
feature_levels: Final = {"metadata.version": 1}


class CannotStart(Exception):
    """Why a broker does not come up, in a sentence for the person who started it."""


class Node:
    def __init__(self, ports: Ports, settings: Settings) -> None:
        self.ports = ports
        self.settings = settings
        self.fetch_sessions = FetchSessions(ports.random, ports.clock)
        self.kafka_port = settings.kafka_port  # the real one, once the door is open
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._loaded = False
        self._recorded: dict[TopicPartition, Checkpoint] = {}  # the checkpoints on disk, as far as written in this life
        self._unrecorded: dict[TopicPartition, Checkpoint] | None = None  # those that could not be written

    async def start(self) -> None:
        disk, folder = self.ports.disk, self.settings.data_dir
        try:
            await make_lasting_dir(disk, folder)
            owner = f"process {self.ports.host.process_id()} (tailrace serve)"
            self._lock = disk.lock(f"{folder}/.lock", owner)
        except InUse as error:
            raise CannotStart(
                f"{folder} is in use by {error.owner}.\nStop it, or give this broker another place with --data-dir."
            ) from None
        except OSError as error:
            raise CannotStart(f"{folder} cannot be used: {error.strerror}.\nGive another with --data-dir.") from None
        try:
            await self._recover(disk, folder)
        except (OSError, StorageFailed, Unreadable) as error:
            self._lock.release()
            raise CannotStart(f"{folder} could not be recovered: {error}.") from error
        except CannotStart:
            self._lock.release()
            raise
        self.upkeep = Upkeep(self)
        self.upkeep.start()

    async def _recover(self, disk: Disk, folder: str) -> None:
        self.meta = await self._load_meta()
        self.voter = Voter(broker=self.broker_id, directory=self.meta.directory_id)
        clean = await take_clean_marker(disk, folder)
        if not clean and disk.exists(f"{folder}/votes"):
            events.info("the last stop was not a clean one: what the checkpoint does not cover is scanned")
        self._votes = VoteJournal(disk, f"{folder}/votes")
        await self._votes.load()
        self.replicas = Replicas(self.ports, self.settings, folder, self.voter, self._votes)
        self.replicas.recovered(load_checkpoints(disk, folder), clean=clean)
        await self._start_metadata()
        await self.replicas.settle()
        self.replicas.sweep()
        self.producer_ids = ProducerIds(self.controller, self.broker_id)

    async def _load_meta(self) -> Meta:
        disk, folder = self.ports.disk, self.settings.data_dir
        meta, wanted = load_meta(disk, folder), self.settings.broker_id
        if meta is None:
            if disk.exists(f"{folder}/votes"):
                raise CannotStart(
                    f"{folder} holds a broker's logs, but its meta.properties is missing.\n"
                    "Put it back; or give this broker another place with --data-dir."
                )
            new_id = self.ports.random.new_id
            meta = Meta(
                cluster_id=show_id(new_id()),
                broker_id=BrokerId(1 if wanted < 0 else wanted),
                directory_id=new_id(),
            )
            await store_meta(disk, folder, meta)
        elif wanted not in (-1, meta.broker_id):
            raise CannotStart(
                f"{folder} belongs to broker {meta.broker_id}, not to {wanted}.\n"
                "Leave out --broker-id, or give this broker another place with --data-dir."
            )
        return meta

    async def _start_metadata(self) -> None:
        settings = TopicSettings.of({"retention.ms": "-1", "retention.bytes": "-1"}, self.settings)
        partition = await self.replicas.open(metadata_topic, metadata_partition, settings)
        if partition.log.damage is not None:
            raise CannotStart(f"the cluster's metadata is damaged: {partition.log.damage}.")
        vote = partition.campaign()
        await self._votes.store([(partition.key, vote)])
        partition.lead(vote)
        partition.announce()
        await partition.committed()
        self.controller = Coordinator(
            partition, Controller(self.brokers), record_kinds, self.ports.clock, self._metadata_committed
        )
        await self.controller.load()
        self._loaded = True
        await self.controller.write(_raise_features)

    def _metadata_committed(self, records: Sequence[object]) -> None:
        self.replicas.committed(records)
        if self._loaded:  # while it loads, a topic may be read of that was deleted later
            self.spawn(self.replicas.settle())

    @property
    def broker_id(self) -> BrokerId:
        return self.meta.broker_id

    @property
    def brokers(self) -> Sequence[BrokerId]:
        """All brokers of the cluster."""
        return [self.broker_id]

    @property
    def advertised_host(self) -> str:
        if self.settings.advertised_host:
            return self.settings.advertised_host
        return "127.0.0.1" if self.settings.host in ("0.0.0.0", "::") else self.settings.host

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else; if it fails, the broker fails, loudly."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[Any]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            events.critical("a task of the broker failed", exc_info=error)
            if not self.failed.done():
                self.failed.set_exception(error)

    async def checkpoint(self) -> None:
        """Write down how far every log is recovered, so that a crash rescans little."""
        if self._unrecorded is not None:
            await self._record(self._unrecorded)
            if self._unrecorded is not None:
                return  # logs rely on the last points being recorded before they give others
        checkpoints = {}
        partitions = [self.controller.partition, *self.replicas.all()]
        for first in range(0, len(partitions), checkpoints_at_once):
            group = partitions[first : first + checkpoints_at_once]
            points = await asyncio.gather(*(partition.log.checkpoint() for partition in group))
            for partition, point in zip(group, points, strict=True):
                if point is not None:
                    checkpoints[partition.key] = Checkpoint(recovery=point, high_watermark=partition.high_watermark)
        await self._record(checkpoints)

    async def _record(self, checkpoints: dict[TopicPartition, Checkpoint]) -> None:
        if checkpoints == self._recorded:
            return
        self._unrecorded = checkpoints
        try:
            await store_checkpoints(self.ports.disk, self.settings.data_dir, checkpoints)
        except OSError as error:
            events.error("the checkpoint could not be written, a crash would cost a longer scan: %s", error)
        else:
            self._recorded, self._unrecorded = checkpoints, None
            for partition in [self.controller.partition, *self.replicas.all()]:
                if (stored := checkpoints.get(partition.key)) is not None:
                    partition.log.recorded(stored.recovery)

    async def stop(self) -> None:
        """Write everything down and let go of the data directory, whatever the disk says."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # a checkpoint under way must not end after ours
        await self.checkpoint()
        self.replicas.resign()
        await self.checkpoint()  # of what came in the meantime
        await self.replicas.close()
        await self.controller.partition.log.close()
        if self._is_settled():
            await self._mark_clean()
        else:
            events.error("this stop is not clean: not everything could be written down, the next start will scan")
        self._votes.close()
        self._lock.release()
        self.ports.offload.close()

    def _is_settled(self) -> bool:
        """Whether everything is on the disk, and written down as such."""
        partitions = [self.controller.partition, *self.replicas.all()]
        return self._unrecorded is None and all(partition.log.settled for partition in partitions)

    async def _mark_clean(self) -> None:
        try:
            await write_clean_marker(self.ports.disk, self.settings.data_dir, self.ports.host.boot_id())
        except OSError as error:
            events.error("this clean stop could not be marked, the next start will scan: %s", error)


def _raise_features(controller: Controller) -> Proposal[None]:
    return controller.raise_features(feature_levels)
