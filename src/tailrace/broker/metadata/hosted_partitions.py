"""The partitions hosted on this broker, as the committed metadata says.

Each committed record is replayed into `image`. For the topics that it changes, `settle` then opens new partitions,
closes and deletes removed ones, and applies settings and log starts, one topic after the other. The votes of partitions
that begin together are stored with one fsync.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, cast

from tailrace.broker.metadata.may_not_vote import MayNotVote
from tailrace.broker.partitions.partition import Partition, closing_fault
from tailrace.broker.replication.quorums import Quorums
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.cluster.image import Image, PartitionPlace, Resource, Topic
from tailrace.cluster.records import (
    BrokerFenced,
    BrokerRegistered,
    MetadataRecord,
    PartitionAdded,
    PartitionLed,
    PartitionStartMoved,
    PartitionWidened,
    SettingChanged,
    TopicAdded,
    TopicRemoved,
)
from tailrace.log.directory.checkpoints import Checkpoint
from tailrace.log.log import Log
from tailrace.log.writing import ScanCost
from tailrace.model.faults import NotLeader, StorageFailed, UnknownTopic, UnknownTopicId
from tailrace.model.ids import BrokerId, Epoch, Id, Offset, TopicPartition, parse_id, show_id
from tailrace.model.settings import NEVER_MS, Settings, kind_of, parse, rows
from tailrace.model.topics import METADATA_TOPIC_ID, TopicSettings
from tailrace.ports import Ports
from tailrace.raft.events import Campaign
from tailrace.raft.replica import Replica, Voter
from tailrace.raft.voters import NO_VOTER, Voters

logger: Final = logging.getLogger(__name__)

OPENED_PER_TURN: Final = 50
OPENED_AT_ONCE: Final = 8  # each waits for the disk now and then: the others go on meanwhile
SETTLED_AT_ONCE: Final = 32  # topics


class HostedPartitions:
    def __init__(self, ports: Ports, settings: Settings, folder: str, votes: VoteJournal, quorums: Quorums) -> None:
        self.image = Image()
        self.settings = settings  # from this broker's configuration; `effective` adds the dynamic ones
        self._ports = ports
        self._folder = folder
        self._me = self.me = quorums.me
        self._votes = votes
        self._quorums = quorums
        self._topics: dict[str | Id, list[Partition | None]] = {}  # by name and by id; None: not on this broker
        self._touched: dict[Id, None] = {}
        self._not_begun: dict[Partition, None] = {}  # opened, but not taking part in their quorums yet
        self._watchers: list[Callable[[Id], None]] = []
        # PartitionEvents, which partitions call; `starting` connects the first two.
        self.leader_changed: Callable[[Partition], None] = _ignore
        self.became_active: Callable[[Partition], None] = _ignore
        self._settling = asyncio.Lock()
        self._opening = asyncio.Semaphore(OPENED_AT_ONCE)
        self.settled = asyncio.Event()  # the partitions known at the start are open, as far as the disk allows
        self.scan_cost = ScanCost()
        self._checkpoints: dict[TopicPartition, Checkpoint] = {}
        self._clean = False
        self._may_truncate = True
        self._may_have_lost = False
        self.may_not_vote = MayNotVote(ports.disk, folder)

    def recovered(
        self, checkpoints: dict[TopicPartition, Checkpoint] | None, *, clean: bool, may_have_lost: bool
    ) -> None:
        """The state left by the previous run. `checkpoints` is None if they exist and are unreadable.

        `may_have_lost`: fsync was not "always" and the machine has rebooted since, so durable offsets reported then may
        be lost.
        """
        self._checkpoints = checkpoints or {}
        self._clean = clean
        self._may_truncate = checkpoints is not None
        self._may_have_lost = may_have_lost

    # Finding partitions

    def find(self, topic: str | Id, partition: int) -> Partition:
        """A partition hosted here; `NotLeader` with the leader if it is on other brokers only."""
        partitions = self._topics.get(topic)
        if partitions is None:
            if isinstance(topic, str):
                raise UnknownTopic(f"there is no topic {topic}")
            raise UnknownTopicId(f"there is no topic with id {show_id(topic)}")
        if not 0 <= partition < len(partitions):
            raise UnknownTopic(f"partition {partition} does not exist, the topic has {len(partitions)}")
        return partitions[partition] or self._elsewhere(topic, partition)

    def _elsewhere(self, topic: str | Id, partition: int) -> NoReturn:
        found = self.image.topics.get(topic) if isinstance(topic, str) else self.image.topics_by_id.get(topic)
        if found is None or partition >= len(found.partitions):
            raise UnknownTopic(f"partition {partition} was deleted")
        place = found.partitions[partition]
        raise NotLeader(f"{found.name}-{partition} is not on this broker", place.leader, place.epoch)

    def of_topic(self, topic: str | Id) -> Sequence[Partition]:
        """The partitions of a topic that are hosted here."""
        return [partition for partition in self._topics.get(topic, ()) if partition is not None]

    def by_number(self, topic: str | Id) -> Sequence[Partition | None]:
        """All partitions of a topic by number; None: not hosted here."""
        return self._topics.get(topic, ())

    def here(self, key: TopicPartition) -> Partition | None:
        """A partition that is hosted here and takes part in its quorum."""
        partitions = self._topics.get(key.topic_id, ())
        found = partitions[key.partition] if 0 <= key.partition < len(partitions) else None
        return None if found in self._not_begun else found

    def all(self) -> Iterable[Partition]:
        for key, partitions in self._topics.items():
            if isinstance(key, str):
                for partition in partitions:
                    if partition is not None:
                        yield partition

    def watch_topics(self, changed: Callable[[Id], None]) -> None:
        """Call `changed` whenever a topic is created or deleted, gets partitions, or has a new leader somewhere."""
        self._watchers.append(changed)

    def changed(self, topic_id: Id) -> None:
        for changed in self._watchers:
            changed(topic_id)

    # Applying the metadata

    def committed(self, records: Sequence[object]) -> None:
        """Replay committed records into the image, and note the topics to settle."""
        for record in cast(Sequence[MetadataRecord], records):
            self.image.replay(record)
            match record:
                case PartitionLed():
                    self.changed(Id(record.topic_id))
                case BrokerRegistered() | BrokerFenced():
                    for topic_id in self.image.topics_by_id:
                        self.changed(topic_id)
                case TopicAdded() | PartitionAdded() | TopicRemoved() | PartitionStartMoved() | PartitionWidened():
                    self._touched[Id(record.topic_id)] = None
                    self.changed(Id(record.topic_id))
                case SettingChanged() if record.resource == Resource.TOPIC:
                    self._touched[self.image.topics[record.owner].id] = None
                case SettingChanged() if record.resource == Resource.BROKER:
                    self._touched.update(dict.fromkeys(self.image.topics_by_id))
                case _:
                    pass

    async def settle(self) -> None:
        """Make the hosted partitions match the image. What fails on the disk is tried again at the next call."""
        async with self._settling:
            effective = self.effective
            touched = list(self._touched)
            for topic_id in touched:
                self._announce(topic_id)
            for first in range(0, len(touched), SETTLED_AT_ONCE):
                group = touched[first : first + SETTLED_AT_ONCE]
                await asyncio.gather(*(self._settle_topic(topic_id, effective) for topic_id in group))
                await self._begin_opened()
            await self._begin_opened()
            self.settled.set()

    async def _settle_topic(self, topic_id: Id, effective: Settings) -> None:
        del self._touched[topic_id]
        topic = self.image.topics_by_id.get(topic_id)
        try:
            if topic is None:
                await self._remove(topic_id)
            else:
                await self._update(topic, effective)
        except (OSError, StorageFailed) as error:
            logger.error(
                "topic %s: cannot apply its metadata to the partitions here, will retry: %s", show_id(topic_id), error
            )
            self._touched[topic_id] = None
        except asyncio.CancelledError:
            self._touched[topic_id] = None  # for the next call, which waits for the lock
            raise

    def _announce(self, topic_id: Id) -> None:
        """Let clients know of a topic's partitions before they are open: until then they are told to ask again."""
        topic = self.image.topics_by_id.get(topic_id)
        if topic is not None:
            partitions = self._topics.setdefault(topic.id, [])
            self._topics[topic.name] = partitions
            partitions += [None] * (len(topic.partitions) - len(partitions))

    async def _open_new(self, topic: Topic, settings: TopicSettings) -> None:
        """Open the partitions of a topic that are placed here and not open yet, several at once."""
        partitions = self._topics[topic.id]
        new = [
            (index, place)
            for index, place in enumerate(topic.partitions)
            if partitions[index] is None and self._me.broker in place.replicas
        ]

        async def open_one(index: int, place: PartitionPlace) -> None:
            async with self._opening:
                partition = await self._open_placed(topic, index, place, settings)
            self._not_begun[partition] = None
            partitions[index] = partition
            if self.may_not_vote.is_stored:  # it need not wait for the others
                del self._not_begun[partition]
                self._begin(partition)

        for first in range(0, len(new), OPENED_PER_TURN):
            await asyncio.gather(*(open_one(*one) for one in new[first : first + OPENED_PER_TURN]))
            if first + OPENED_PER_TURN < len(new):
                await self._begin_opened()  # the first ones need not wait for the last

    async def _update(self, topic: Topic, effective: Settings) -> None:
        """Open new partitions of a topic, and apply settings and log starts to all."""
        self._announce(topic.id)  # it may have got more partitions meanwhile
        settings = TopicSettings.of(topic.settings, effective)
        await self._open_new(topic, settings)
        for index, place in enumerate(topic.partitions):
            partition = self._topics[topic.id][index] if index < len(self._topics[topic.id]) else None
            if partition is not None:
                partition.log.use(settings)
                if _is_behind(partition.log, place.start) and not await partition.begin_at(place.start):
                    self._touched[topic.id] = None  # again, once its high watermark is there
            if index % OPENED_PER_TURN == OPENED_PER_TURN - 1:
                await asyncio.sleep(0)  # a topic with thousands of partitions must not block the loop

    async def _open_placed(self, topic: Topic, index: int, place: PartitionPlace, settings: TopicSettings) -> Partition:
        voters = tuple(map(Voter, place.founders, place.directories))
        return await self.open(f"{topic.name}-{index}", TopicPartition(topic.id, index), settings, voters)

    async def _begin_opened(self) -> None:
        """Let opened partitions take part in their quorums, once it is stored which of them may not vote."""
        try:
            await self.may_not_vote.store()
        except OSError as error:
            logger.error("cannot write may-not-vote: %d partitions stay closed: %s", len(self._not_begun), error)
            return
        for number, partition in enumerate(list(self._not_begun), 1):
            if partition not in self._not_begun:
                continue  # another call was faster
            del self._not_begun[partition]
            self._begin(partition)
            if number % OPENED_PER_TURN == 0:
                await asyncio.sleep(0)

    def _begin(self, partition: Partition) -> None:
        """Take part in the quorum. The first replica of a new partition starts an election at once."""
        voters = partition.replica.voters
        brand_new = partition.log.end == 0 and partition.epoch < 0
        partition.member.begin(self._quorums.timing.fetch_timeout_s if brand_new and voters[0] != self._me else 0.0)
        # The log's voters count, which `begin` has read.
        alone = partition.replica.voters == (self._me,) and partition.key not in self.may_not_vote
        if alone or (brand_new and voters[0] == self._me):
            partition.member.step(Campaign())
        self._quorums.opened(partition.member)

    async def _remove(self, topic_id: Id) -> None:
        for partition in self._topics.pop(topic_id, []):
            if partition is None:
                continue
            name = partition.name.rpartition("-")[0]
            partition.resign(UnknownTopic(f"topic {name} was deleted"))
            self._quorums.closed(partition.member)
            self._not_begun.pop(partition, None)
            try:
                await partition.log.delete()
            except OSError as error:
                logger.error(
                    "%s: cannot delete the folder, the next start tries again: %s", partition.log.folder, error
                )
            self._votes.forget([partition.key])
            self.may_not_vote.remove([partition.key])
        for name in [name for name in self._topics if isinstance(name, str) and name not in self.image.topics]:
            del self._topics[name]

    @property
    def effective(self) -> Settings:
        """The broker's settings, overridden by the dynamic ones: cluster-wide first, then those of this broker."""
        dynamic: dict[str, Any] = {}
        for owner in ("", str(self._me.broker)):
            for name, value in self.image.broker_settings.get(owner, {}).items():
                one = rows()[name]
                dynamic[one.name] = parse(name, kind_of(one), value)
        return replace(self.settings, **dynamic)

    @property
    def flush_by_time(self) -> bool:
        """Whether `flush.ms` is set for any topic. Usually not, and then no partition has to be visited for it."""
        by_default = self.effective.log_flush_ms != NEVER_MS
        return by_default or any("flush.ms" in topic.settings for topic in self.image.topics.values())

    # Opening and repairing

    async def open(self, name: str, key: TopicPartition, settings: TopicSettings, voters: Voters) -> Partition:
        # The metadata log is always synced, whatever the fsync setting: an id assigned twice would be far worse.
        own = key.topic_id == METADATA_TOPIC_ID
        checkpoint = self._checkpoints.get(key)
        log = await Log.open(
            self.folder_of(key),
            self._ports,
            settings=settings,
            fsync="always" if own else self.settings.fsync,
            recovery=None if checkpoint is None else checkpoint.recovery,
            clean=self._clean,
            producer_expiration_ms=self.settings.producer_id_expiration_ms,
            may_truncate=self._may_truncate,
            scan_cost=self.scan_cost,
        )
        self._checkpoints.pop(key, None)
        sole = voters == (self._me,) and not log.voter_sets and not log.voters_before
        vote = self._votes.last(key)
        took_part = vote.epoch >= 0  # votes are always synced: without an epoch it has reported nothing as durable
        if not sole and (log.damage is not None or (self._may_have_lost and took_part and not own)):
            self.may_not_vote.add(key)
        damage = log.damage
        if log.damage is not None:
            await self._handle_damage(name, log, sole=sole)
        if log.voters_before:
            voters = tuple(Voter(BrokerId(broker), directory) for broker, directory in log.voters_before)
        high_watermark = log.start if checkpoint is None else max(log.start, min(checkpoint.high_watermark, log.end))
        if log.damage is not None and checkpoint is None:
            high_watermark = log.end  # the log is read-only, so no later append can commit the part that is good
        epoch = Epoch(max(vote.epoch, log.epochs.last))
        replica = Replica(
            me=self._me,
            epoch=epoch,
            log_end=Offset(log.end),
            high_watermark=Offset(high_watermark),
            voters=voters,
            voted_for=vote.voter if vote.epoch == epoch else NO_VOTER,
            may_vote=key not in self.may_not_vote and not log.refilling,
            epochs=log.epochs,
            timing=self._quorums.timing,
            now=self._quorums.now(),
            chance=self._quorums.chance(),
        )
        partition = Partition(name, key, log, replica, self._quorums, events=self)
        partition.member.damage = damage
        return partition

    async def _handle_damage(self, name: str, log: Log, *, sole: bool) -> None:
        """With other voters: drop the damaged log and fetch all of it again. A sole voter keeps the good part."""
        if sole:
            logger.error("%s: log damaged and no other replica, read-only: %s", name, log.damage)
        else:
            logger.error("%s: log damaged, fetching all of it from the leader: %s", name, log.damage)
            await self.may_not_vote.store()
            await log.start_over(keep_aside=True)

    async def losing_log(self, partition: Partition) -> None:
        self.may_not_vote.add(partition.key)
        await self.may_not_vote.store()

    def repaired(self, partition: Partition) -> None:
        self._quorums.spawn(self._repaired(partition))

    async def _repaired(self, partition: Partition) -> None:
        self.may_not_vote.remove([partition.key])
        try:
            await partition.log.refilled()
            await self.may_not_vote.store()
        except (
            OSError,
            StorageFailed,
        ) as error:  # after a restart it must catch up again before it votes, which costs only time
            logger.error(
                "%s: cannot remove it from may-not-vote, after a restart it must catch up again: %s",
                partition.name,
                error,
            )

    def folder_of(self, key: TopicPartition) -> str:
        return f"{self._folder}/{key}"

    def unopened(self) -> dict[TopicPartition, Checkpoint]:
        """The last run's checkpoints of partitions that this run has not opened yet."""
        return {key: one for key, one in self._checkpoints.items() if key.topic_id not in self.image.removed}

    @property
    def all_scanned(self) -> bool:
        """Whether no log is left that this run did not open, after a run that did not stop cleanly."""
        return self._clean or not any(
            self._me.broker in place.replicas and (index >= len(here) or here[index] is None)
            for topic in self.image.topics_by_id.values()
            for here in (self._topics.get(topic.id, []),)
            for index, place in enumerate(topic.partitions)
        )

    def sweep(self) -> None:
        """Delete folders of deleted topics; warn about folders of unknown topics."""
        for name in self._ports.disk.names(self._folder):
            text = name.rpartition("-")[0]
            try:
                topic_id = parse_id(text)
            except ValueError:
                continue
            if topic_id in self.image.removed:
                try:
                    self._ports.disk.remove_dir(f"{self._folder}/{name}")
                except OSError as error:
                    logger.error("%s/%s: cannot delete the folder of a deleted topic: %s", self._folder, name, error)
            elif topic_id not in self.image.topics_by_id and topic_id != METADATA_TOPIC_ID:
                logger.warning("%s/%s: not a topic of this cluster, ignoring the folder", self._folder, name)

    def resign(self) -> None:
        """Resign as leader of all partitions: no log grows from now on."""
        for partition in self.all():
            partition.resign(closing_fault(partition.name))

    async def close(self) -> None:
        for partition in list(self.all()):
            await partition.log.close()


def _is_behind(log: Log, start: int) -> bool:
    """Whether the log start must move up to `start`. A read-only log stays, unless the move removes its damage."""
    past_damage = log.failed is None and log.damage is not None and log.damage.offset < start
    return start > log.start and (log.refusal is None or past_damage)


def _ignore(partition: Partition) -> None:
    pass
