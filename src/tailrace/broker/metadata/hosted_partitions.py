"""The partitions that live on this broker, kept in step with the metadata image.

`image` is the committed one: each committed record is folded into it, and the topics it touches are brought in line by
`settle`, one change after the other: new partitions are opened and led, removed ones closed and deleted, settings and
starts handed on. Votes of all partitions that begin together are stored with one fsync.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, cast

from tailrace.broker.metadata.may_not_vote import MayNotVote
from tailrace.broker.partitions.member import QuorumMember
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


class HostedPartitions:
    def __init__(self, ports: Ports, settings: Settings, folder: str, votes: VoteJournal, quorums: Quorums) -> None:
        self.image = Image()
        self.settings = settings  # the broker's own; `effective` adds what the cluster says
        self._ports = ports
        self._folder = folder
        self._me = self.me = quorums.me
        self._votes = votes
        self._quorums = quorums
        self._topics: dict[str | Id, list[Partition | None]] = {}  # by name and by id; None: other brokers hold it
        self._touched: dict[Id, None] = {}
        self._fresh: dict[Partition, None] = {}  # opened, and not taking part yet
        self._watchers: list[Callable[[Id], None]] = []
        self._settling = asyncio.Lock()
        self._checkpoints: dict[TopicPartition, Checkpoint] = {}
        self._clean = False
        self._may_truncate = True
        self._may_have_lost = False
        self.may_not_vote = MayNotVote(ports.disk, folder)

    def recovered(
        self, checkpoints: dict[TopicPartition, Checkpoint] | None, *, clean: bool, may_have_lost: bool
    ) -> None:
        """What the last life left behind; None: there were checkpoints, and they cannot be read.

        `may_have_lost`: what was promised was not always forced to the disk, and the machine has been restarted since.
        """
        self._checkpoints = checkpoints or {}
        self._clean = clean
        self._may_truncate = checkpoints is not None
        self._may_have_lost = may_have_lost

    # Finding partitions

    def find(self, topic: str | Id, partition: int) -> Partition:
        """A partition that is here; where another broker has it, `NotLeader` says which."""
        partitions = self._topics.get(topic)
        if partitions is None:
            if isinstance(topic, str):
                raise UnknownTopic(f"there is no topic {topic}")
            raise UnknownTopicId(f"there is no topic with id {show_id(topic)}")
        if not 0 <= partition < len(partitions):
            raise UnknownTopic(f"partition {partition}: there are {len(partitions)}")
        return partitions[partition] or self._elsewhere(topic, partition)

    def _elsewhere(self, topic: str | Id, partition: int) -> NoReturn:
        found = self.image.topics.get(topic) if isinstance(topic, str) else self.image.topics_by_id.get(topic)
        if found is None or partition >= len(found.partitions):
            raise UnknownTopic(f"partition {partition} is gone")
        place = found.partitions[partition]
        raise NotLeader(f"{found.name}-{partition} is not on this broker", place.leader, place.epoch)

    def of_topic(self, topic: str | Id) -> Sequence[Partition]:
        """Those that are here."""
        return [partition for partition in self._topics.get(topic, ()) if partition is not None]

    def by_number(self, topic: str | Id) -> Sequence[Partition | None]:
        """All of a topic's; None: other brokers hold it."""
        return self._topics.get(topic, ())

    def here(self, key: TopicPartition) -> Partition | None:
        """A partition that is here and takes part in its quorum."""
        partitions = self._topics.get(key.topic_id, ())
        found = partitions[key.partition] if 0 <= key.partition < len(partitions) else None
        return None if found in self._fresh else found

    def all(self) -> Iterable[Partition]:
        for key, partitions in self._topics.items():
            if isinstance(key, str):
                for partition in partitions:
                    if partition is not None:
                        yield partition

    def watch_topics(self, changed: Callable[[Id], None]) -> None:
        """Call back whenever a topic begins, ends, grows or has another leader somewhere."""
        self._watchers.append(changed)

    def changed(self, topic_id: Id) -> None:
        for changed in self._watchers:
            changed(topic_id)

    # Following the metadata

    def committed(self, records: Sequence[object]) -> None:
        """Fold committed records into the image and note what they touch."""
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
        """Bring the partitions in line with the image. What the disk does not let us do is tried again next time."""
        async with self._settling:
            effective = self.effective
            for topic_id in list(self._touched):
                del self._touched[topic_id]
                topic = self.image.topics_by_id.get(topic_id)
                try:
                    if topic is None:
                        await self._remove(topic_id)
                    else:
                        await self._update(topic, effective)
                except (OSError, StorageFailed) as error:
                    logger.error(
                        "topic %s: cannot apply its metadata to the partitions here, will retry: %s",
                        show_id(topic_id),
                        error,
                    )
                    self._touched[topic_id] = None
                except asyncio.CancelledError:
                    self._touched[topic_id] = None  # for whoever waits to settle behind us
                    raise
            await self._begin_fresh()

    async def _update(self, topic: Topic, effective: Settings) -> None:
        """Open what is new here."""
        partitions = self._topics.setdefault(topic.id, [])
        self._topics[topic.name] = partitions
        settings = TopicSettings.of(topic.settings, effective)
        for index, place in enumerate(topic.partitions):
            if index == len(partitions):
                partitions.append(None)
            partition = partitions[index]
            if partition is None and self._me.broker in place.replicas:
                partition = partitions[index] = await self._open_placed(topic, index, place, settings)
                self._fresh[partition] = None
            if partition is not None:
                partition.log.use(settings)
                if _is_behind(partition.log, place.start) and not await partition.begin_at(place.start):
                    self._touched[topic.id] = None  # once it has come so far
            if index % OPENED_PER_TURN == OPENED_PER_TURN - 1:
                await asyncio.sleep(0)  # a topic of thousands must not stall the loop
                if self.may_not_vote.is_stored:
                    await self._begin_fresh()  # nor need the first of them wait for the last

    async def _open_placed(self, topic: Topic, index: int, place: PartitionPlace, settings: TopicSettings) -> Partition:
        voters = tuple(map(Voter, place.founders, place.directories))
        return await self.open(f"{topic.name}-{index}", TopicPartition(topic.id, index), settings, voters)

    async def _begin_fresh(self) -> None:
        """Let partitions that were opened take part, once it is written down which of them may not vote."""
        try:
            await self.may_not_vote.store()
        except OSError as error:
            logger.error("cannot write may-not-vote: %d partitions stay closed: %s", len(self._fresh), error)
            return
        for number, partition in enumerate(list(self._fresh), 1):
            del self._fresh[partition]
            self._begin(partition)
            if number % OPENED_PER_TURN == 0:
                await asyncio.sleep(0)

    def _begin(self, partition: Partition) -> None:
        """Take part; who is the first to lead a new partition does so at once."""
        voters = partition.replica.voters
        brand_new = partition.log.end == 0 and partition.epoch < 0
        partition.begin(self._quorums.timing.fetch_timeout_s if brand_new and voters[0] != self._me else 0.0)
        alone = (
            partition.replica.voters == (self._me,) and partition.key not in self.may_not_vote
        )  # as its log says by now
        if alone or (brand_new and voters[0] == self._me):
            partition.step(Campaign())
        self._quorums.opened(partition)

    async def _remove(self, topic_id: Id) -> None:
        for partition in self._topics.pop(topic_id, []):
            if partition is None:
                continue
            name = partition.name.rpartition("-")[0]
            partition.resign(UnknownTopic(f"topic {name} was deleted"))
            self._quorums.closed(partition)
            self._fresh.pop(partition, None)
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
        """The broker's settings with what the cluster was told for all brokers, and for this one, on top."""
        told: dict[str, Any] = {}
        for owner in ("", str(self._me.broker)):
            for name, value in self.image.broker_settings.get(owner, {}).items():
                one = rows()[name]
                told[one.name] = parse(name, kind_of(one), value)
        return replace(self.settings, **told)

    @property
    def flush_by_time(self) -> bool:
        """Whether `flush.ms` was set, for all topics or for any: mostly it is not, and there may be many partitions."""
        by_default = self.effective.log_flush_ms != NEVER_MS
        return by_default or any("flush.ms" in topic.settings for topic in self.image.topics.values())

    # Partitions' lives

    async def open(self, name: str, key: TopicPartition, settings: TopicSettings, voters: Voters) -> Partition:
        # The metadata log is synced whatever users chose for their data: an id given twice would cost far more.
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
        )
        sole = voters == (self._me,) and not log.voter_sets and not log.voters_before
        vote = self._votes.last(key)
        vouched = vote.epoch >= 0  # votes are always synced: who never knew an epoch has promised nothing
        if not sole and (log.damage is not None or (self._may_have_lost and vouched and not own)):
            self.may_not_vote.add(key)
        if log.damage is not None:
            await self._answer_damage(name, log, sole=sole)
        if log.voters_before:
            voters = tuple(Voter(BrokerId(broker), directory) for broker, directory in log.voters_before)
        high_watermark = log.start if checkpoint is None else max(log.start, min(checkpoint.high_watermark, log.end))
        if log.damage is not None and checkpoint is None:
            high_watermark = log.end  # nothing can be written any more that would commit what is still good
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
        return Partition(name, key, log, replica, self._quorums)

    async def _answer_damage(self, name: str, log: Log, *, sole: bool) -> None:
        """Where others have what is damaged here, fetch all of it again; a sole voter keeps what is good."""
        if sole:
            logger.error("%s: log damaged and no other replica, read-only: %s", name, log.damage)
        else:
            logger.error("%s: log damaged, fetching all of it from the leader: %s", name, log.damage)
            await self.may_not_vote.store()
            await log.start_over()

    def repaired(self, member: QuorumMember) -> None:
        self._quorums.spawn(self._repaired(member))

    async def _repaired(self, member: QuorumMember) -> None:
        self.may_not_vote.remove([member.key])
        try:
            await member.log.refilled()
            await self.may_not_vote.store()
        except (OSError, StorageFailed) as error:  # the next start takes them for unfit, which costs only time
            logger.error(
                "%s: cannot remove it from may-not-vote, after a restart it must catch up again: %s", member.name, error
            )

    def folder_of(self, key: TopicPartition) -> str:
        return f"{self._folder}/{key}"

    def sweep(self) -> None:
        """Delete folders of topics that were removed; report folders that the metadata does not know."""
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
        """Lead nothing any more: from now on no log grows."""
        for partition in self.all():
            partition.resign(closing_fault(partition.name))

    async def close(self) -> None:
        for partition in list(self.all()):
            await partition.log.close()


def _is_behind(log: Log, start: int) -> bool:
    """Whether a log can begin later than it does. One that takes no writes stays, unless its damage goes with that."""
    past_damage = log.failed is None and log.damage is not None and log.damage.offset < start
    return start > log.start and (log.refusal is None or past_damage)
