"""The acknowledgements of messages that one broker delivered, until it has confirmed them.

    batches = acknowledgements.take()            for the next request
    done = acknowledgements.answered(errors)     or `abandoned` when no response came

A broker takes all acknowledgements of a partition that are in one request, or none. So one message whose lock has ended
makes it refuse the others: then they are sent again in halves, until only that one is refused.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tailrace.client.shares.message import Outcome
from tailrace.model.ids import TopicPartition
from tailrace.wire.errors import Error
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch

# The broker no longer leads the partition: its locks are void.
MOVED: Final = (
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID,
)

Batches = Mapping[TopicPartition, tuple[AcknowledgementBatch, ...]]


class Decision(NamedTuple):
    offset: int
    outcome: Outcome
    locked_until: float = 0.0  # a refusal that may pass is retried until then
    token: Any = None  # of the caller, who gets it back with the result


Decisions = tuple[Decision, ...]


class Settled(NamedTuple):
    decision: Decision
    error: Error


class Acknowledgements:
    def __init__(self) -> None:
        self._pending: dict[TopicPartition, dict[int, Decision]] = {}
        self._halves: dict[TopicPartition, deque[Decisions]] = {}  # of what was refused: one at a time
        self._sent: dict[TopicPartition, Decisions] = {}

    def __len__(self) -> int:
        """How many decisions wait to be sent."""
        halves = sum(len(half) for halves in self._halves.values() for half in halves)
        return halves + sum(map(len, self._pending.values()))

    def __iter__(self) -> Iterator[Decision]:
        """The decisions that wait to be sent."""
        for pending in self._pending.values():
            yield from pending.values()
        for halves in self._halves.values():
            for half in halves:
                yield from half

    def add(self, partition: TopicPartition, decision: Decision) -> Decision | None:
        """A later decision replaces one that was not sent yet, such as a renewal; that one is returned."""
        pending = self._pending.setdefault(partition, {})
        replaced = pending.get(decision.offset)
        pending[decision.offset] = decision
        return replaced

    def take(self) -> Batches:
        """What the next request says; it must be answered or abandoned before the next call."""
        assert not self._sent, "an earlier request has no answer yet"
        for partition in {**self._halves, **self._pending}:
            halves = self._halves.get(partition)
            if halves:
                self._sent[partition] = halves.popleft()
                if not halves:
                    del self._halves[partition]
            else:
                pending = self._pending.pop(partition)
                self._sent[partition] = tuple(pending[offset] for offset in sorted(pending))
        return {partition: tuple(_ranges(sent)) for partition, sent in self._sent.items()}

    @property
    def is_sent(self) -> bool:
        """Whether a request with acknowledgements has no answer yet."""
        return bool(self._sent)

    @property
    def renews(self) -> bool:
        """Whether the request under way renews locks."""
        return any(one.outcome is Outcome.RENEW for sent in self._sent.values() for one in sent)

    def answered(self, errors: Mapping[TopicPartition, Error], now: float) -> list[Settled]:
        """Take the results of the request. A partition that the broker does not mention is retried."""
        settled: list[Settled] = []
        sent, self._sent = self._sent, {}
        for partition, decisions in sent.items():
            error = errors.get(partition, Error.REQUEST_TIMED_OUT)
            if error is Error.INVALID_RECORD_STATE and len(decisions) > 1:
                middle = len(decisions) // 2
                self._halves.setdefault(partition, deque()).extend((decisions[:middle], decisions[middle:]))
            elif error.retriable and error not in MOVED:
                settled += self._again(partition, decisions, error, now)
            else:
                settled += [Settled(one, error) for one in decisions]
        return settled

    def refused(self, error: Error, now: float) -> list[Settled]:
        """The broker refused the whole request, and did nothing of it."""
        return self.answered(dict.fromkeys(self._sent, error), now)

    def abandoned(self, error: Error) -> list[Settled]:
        """No response came: the request may have been executed. What was not sent yet is given up, too: its
        locks ended with the connection."""
        waiting = list(self)
        sent, self._sent = self._sent, {}
        self._pending.clear()
        self._halves.clear()
        return [Settled(one, error) for one in (*(one for decisions in sent.values() for one in decisions), *waiting)]

    def _again(self, partition: TopicPartition, decisions: Decisions, error: Error, now: float) -> Iterable[Settled]:
        for one in decisions:
            if now >= one.locked_until:
                yield Settled(one, error)
            elif one.offset not in self._pending.get(partition, {}):
                self.add(partition, one)


def _ranges(decisions: Decisions) -> Iterable[AcknowledgementBatch]:
    """Neighbouring offsets with the same outcome are one range."""
    first = last = decisions[0]
    for one in decisions[1:]:
        if one.offset != last.offset + 1 or one.outcome is not first.outcome:
            yield _range(first, last)
            first = one
        last = one
    yield _range(first, last)


def _range(first: Decision, last: Decision) -> AcknowledgementBatch:
    return AcknowledgementBatch(
        first_offset=first.offset, last_offset=last.offset, acknowledge_types=(int(first.outcome),)
    )
