"""One sink at work: rounds, each of which brings the tables to what the cluster has when it begins.

Order matters twice. Registrations are read after the messages that are written next, and after last-seen times: so the
producer of a message, and whoever was seen, is in its table. And a topic's id is looked up after its messages were
read: if it has changed, they may be another topic's, and the round is run again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tailrace.client.last_seen import Seen
from tailrace.client.registrations import REGISTRATIONS
from tailrace.model.ids import PartitionName
from tailrace.model.limits import MiB
from tailrace.pipeline.failure import NoSuchTopic, PipelineFailed
from tailrace.pipeline.postgres.queue.database import QueueDatabase, Read, Size, TopicPart
from tailrace.pipeline.postgres.queue.reading import OutOfRange, QueueReader, Survey, Topic, TopicGone

WRITTEN_MAX_BYTES: Final = 4 * MiB  # payloads in one transaction, and a piece more
WRITTEN_MAX_MESSAGES: Final = 50_000
ROUND_ATTEMPTS: Final = 10
ROUND_PAUSE_S: Final = 0.5
ALL_SIZES_EVERY_S: Final = 60.0  # the others are written when their consumer was seen, or its topic has grown

OnProgress = Callable[[int, int], None]  # offsets that were read in this round, and how many there are to read
OnNote = Callable[[str], None]


class QueueSink:
    def __init__(
        self,
        reader: QueueReader,
        database: QueueDatabase,
        *,
        topics: Sequence[str],
        observe_every_s: float,
        on_progress: OnProgress,
        on_note: OnNote,
    ) -> None:
        """`topics`: whose messages are written; none: those that producers and consumers registered for."""
        self._reader = reader
        self._database = database
        self._topics = topics
        self._observe_every_s = observe_every_s
        self._on_progress = on_progress
        self._on_note = on_note
        self._next: dict[TopicPart, int] = {}  # offsets
        self._registered: dict[str, None] = {}  # topics
        self._seen: dict[tuple[str, int], int] = {}  # the last-seen times that were written
        self._grown: dict[str, None] = {}  # topics with messages since sizes were written
        self._observed_at = self._all_sizes_at = float("-inf")
        self.messages = 0  # written
        self.worked_at = float("-inf")  # when the database last did what it was to do

    def prepare(self) -> None:
        """Make the tables, and find out how far they are."""
        survey = self._reader.survey()
        self._database.prepare(survey.cluster_id)
        self._next = self._database.progress()
        self._registered = dict.fromkeys(self._database.registered_topics())
        if REGISTRATIONS.topic in survey.topics:
            self._database.demand_same(survey.topics[REGISTRATIONS.topic])

    def run_round(self) -> None:
        """Again if a topic is deleted meanwhile: the next survey does not have it."""
        for left in reversed(range(ROUND_ATTEMPTS)):
            try:
                self._run_round()
            except TopicGone:
                if not left:
                    raise NoSuchTopic("topics are deleted all the time: what is in them cannot be read") from None
                time.sleep(ROUND_PAUSE_S)
            else:
                return

    def _run_round(self) -> None:
        survey = self._reader.survey()
        self._database.write_topics(survey.queue_topics())
        self._register(survey)
        self._copy(survey)
        self._observe()
        self.worked_at = time.monotonic()

    # Registrations

    def _register(self, survey: Survey) -> None:
        topic = survey.topics.get(REGISTRATIONS.topic)
        if topic is None:
            return  # nobody has registered yet
        self._begin([topic])
        place = (topic.id, REGISTRATIONS.partition)
        try:
            found, end = self._reader.registrations(REGISTRATIONS, self._next[place])
        except OutOfRange:
            raise PipelineFailed(f"{topic.name} does not have offset {self._next[place]} any more") from None
        if end != self._next[place]:
            self._database.write_registrations(topic, found, end)
            self._next[place] = end
        self._registered |= dict.fromkeys(one.registration.topic for one in found)

    def _begin(self, topics: Sequence[Topic]) -> None:
        """Note where the reading of partitions begins that were not read before."""
        for topic in topics:
            fresh = [one for one in topic.places() if (topic.id, one.partition) not in self._next]
            if fresh:
                begins = self._reader.begins(fresh)
                self._database.begin(topic, begins)
                self._next |= {(topic.id, one.partition): offset for one, offset in begins.items()}

    # Messages

    def _copied_topics(self, survey: Survey) -> list[Topic]:
        missing = [name for name in self._topics if name not in survey.topics]
        if missing:
            raise NoSuchTopic(f"there is no topic {missing[0]}; `tailrace topic list` shows what is there")
        names = self._topics or self._registered
        return [survey.topics[name] for name in names if name in survey.topics]

    def _copy(self, survey: Survey) -> None:
        """Write what the partitions have now."""
        topics = self._copied_topics(survey)
        self._begin(topics)
        ends = self._reader.ends([place for topic in topics for place in topic.places()])
        ranges = [
            (topic, place, ends[place])
            for topic in topics
            for place in topic.places()
            if self._next[topic.id, place.partition] < ends[place]
        ]
        total = sum(end - self._next[topic.id, place.partition] for topic, place, end in ranges)
        done = 0
        pending: list[Read] = []
        for topic, place, end in ranges:
            at = first = self._next[topic.id, place.partition]
            while at < end:
                piece = self._read(topic, place, at)
                if piece is None:
                    break
                at = piece.end
                pending.append(piece)
                if _is_enough(pending):
                    self._write(survey, pending)
                    pending = []
                self._on_progress(done + at - first, total)
            done += end - first
        self._write(survey, pending)

    def _read(self, topic: Topic, place: PartitionName, at: int) -> Read | None:
        """The next piece; None if there is nothing more."""
        try:
            messages, end = self._reader.messages(place, at)
        except OutOfRange:
            self._reader.demand_unchanged([topic])
            begin = self._reader.begins([place])[place]
            if begin <= at:
                raise PipelineFailed(
                    f"{place} ends before offset {at}, up to which its messages were written: was data lost?"
                ) from None
            self._on_note(f"offsets {at} to {begin - 1} of {place} were deleted before they were read")
            messages, end = [], begin
        return Read(topic, place, messages, end) if end > at else None

    def _write(self, survey: Survey, pieces: Sequence[Read]) -> None:
        if not pieces:
            return
        self._register(survey)
        topics = {one.topic.name: one.topic for one in pieces}
        self._reader.demand_unchanged(list(topics.values()))
        self.messages += self._database.write_messages(pieces)
        self.worked_at = time.monotonic()
        self._next |= {(one.topic.id, one.place.partition): one.end for one in pieces}
        self._grown |= dict.fromkeys(topics)
        if time.monotonic() - self._observed_at >= self._observe_every_s:
            self._observe()

    # Who was seen

    def _observe(self) -> None:
        self._observed_at = time.monotonic()
        survey = self._reader.survey()
        news = [one for one in self._reader.last_seen() if self._seen.get((one.kind, one.id)) != one.at_ms]
        self._register(survey)
        self._database.see_brokers(survey.brokers, self._reader.now_ms(), _times(news, "broker"))
        consumers = _times(news, "consumer")
        self._database.see_clients(_times(news, "producer"), consumers)
        self._write_sizes(survey, list(consumers))
        self._seen |= {(one.kind, one.id): one.at_ms for one in news}

    def _write_sizes(self, survey: Survey, seen: Sequence[int]) -> None:
        now = time.monotonic()
        writes_all = now - self._all_sizes_at >= ALL_SIZES_EVERY_S
        consumers = self._database.consumers(None if writes_all else list(self._grown), seen)
        by_topic: dict[str, list[int]] = {}
        for number, name in consumers:
            by_topic.setdefault(name, []).append(number)
        for name, numbers in sorted(by_topic.items()):
            if name in survey.topics:
                self._database.write_sizes(self._sizes(survey.topics[name], numbers))
        self._grown = {}
        if writes_all:
            self._all_sizes_at = now

    def _sizes(self, topic: Topic, consumers: Sequence[int]) -> list[Size]:
        places = topic.places()
        begins = self._reader.begins(places)
        ends = self._reader.ends(places, committed=False)
        return [self._size(topic, consumer, begins, ends) for consumer in consumers]

    def _size(
        self, topic: Topic, consumer: int, begins: Mapping[PartitionName, int], ends: Mapping[PartitionName, int]
    ) -> Size:
        starts, ahead = dict(begins), dict.fromkeys(begins, 0)
        for place, position in self._reader.positions(consumer, list(begins)):
            starts[place] = max(begins[place], position.start)
            if position.lag is not None:  # with several locks a partition, messages after the start may be finished
                ahead[place] = max(0, ends[place] - position.start - position.lag)
        numbers = [place.partition for place in begins]
        return Size(consumer, topic.id, numbers, list(starts.values()), list(ahead.values()))


def _is_enough(pieces: Sequence[Read]) -> bool:
    size = sum(len(one.record.value or b"") for piece in pieces for one in piece.messages)
    return size >= WRITTEN_MAX_BYTES or sum(len(piece.messages) for piece in pieces) >= WRITTEN_MAX_MESSAGES


def _times(seen: Sequence[Seen], kind: str) -> dict[int, int]:
    return {one.id: one.at_ms for one in seen if one.kind == kind}
