"""What the members of one share group were told about records, compared with each other.

Every delivery has the times at which its request was sent and its response received: the broker decided in between.
Two deliveries have an order only if one was received before the other was requested.

A *tenure* is the time during which one leader has a share partition in memory. Within a tenure:

- Each delivery of a record has a higher count than those before, so no two deliveries have the same one.
- While a member holds a record, nobody else gets it.

Always, whatever crashes:

- After an answered accept or reject, a record is not delivered again.
- After an answered release, all later deliveries have a higher count, and none comes before the record has rested.
- No count is above the delivery limit, and a record on its last delivery travels alone.
- A record is delivered at most as often as the limit says, and once more for each new tenure.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from tailrace.model.frozen import frozen
from tailrace.model.ids import TopicPartition
from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import Acknowledge
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated

CLOCK_ERROR: Final = 0.999  # clocks drift: so much of a time has passed for certain
FINAL: Final = (Acknowledge.ACCEPT, Acknowledge.REJECT)


class RecordPosition(NamedTuple):
    place: TopicPartition
    offset: int

    def __str__(self) -> str:
        return f"offset {self.offset} of {self.place}"


@frozen
class Exchange:
    """One request and its response: who asked, when, and which tenure answered."""

    member: str
    sent: float
    received: float
    tenure: int | None  # None: it may have changed meanwhile
    sent_wall_ms: int | None  # by the leader's clock; None: that was set meanwhile
    highest_wall_ms: int  # that the leader's clock has ever shown
    clock_set_at: float  # when the leader's clock was set last


class Delivery(NamedTuple):
    count: int  # type: ignore[assignment]  # hides a method of tuples
    exchange: Exchange


class Rest(NamedTuple):
    """A record was released and must not be delivered before it has rested."""

    answered: float
    ends: float  # at the earliest
    ends_wall_ms: int | None  # at the earliest, by the clock of the leader that released it


class RecordHistory:
    __slots__ = ("accepted", "deliveries", "final", "finished_at", "rest", "stored_count")

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.final: dict[Acknowledge, None] = {}  # accepts and rejects that were sent, answered or not
        self.finished_at: float | None = None  # when an accept or reject was answered
        self.accepted = False  # by its holder, for certain: a late accept of a finished record is answered, too
        self.stored_count: tuple[float, int] | None = None  # of an answered release: when, and the delivery count
        self.rest: Rest | None = None


class ShareHistory:
    def __init__(self, group: str, rules: ShareRules, tenures_of: Callable[[TopicPartition], int]) -> None:
        self.group = group
        self.rules = rules
        self._tenures_of = tenures_of  # how many there have been
        self._records: dict[RecordPosition, RecordHistory] = {}
        self.assigned: dict[TopicPartition, None] = {}  # partitions that a member has been assigned
        self.unanswered: dict[TopicPartition, int] = {}  # fetches of it without a response: what they took is unknown
        self.delivered_records = 0
        self.finished_records = 0

    def of(self, record: RecordPosition) -> RecordHistory:
        if record not in self._records:
            self._records[record] = RecordHistory()
        return self._records[record]

    def __iter__(self) -> Iterator[tuple[RecordPosition, RecordHistory]]:
        return iter(self._records.items())

    # Deliveries

    def delivered(self, place: TopicPartition, offsets: dict[int, int], exchange: Exchange) -> None:
        """Check the records of one partition in a response; `offsets` has their delivery counts."""
        limit = self.rules.delivery_limit
        for offset, count in offsets.items():
            record = RecordPosition(place, offset)
            if count > limit or (count == limit and len(offsets) > 1):
                self._violated(
                    Invariant.DELIVERY_COUNTS,
                    f"{record} is delivered for the {count}. time with {len(offsets) - 1} others, the limit is {limit}",
                    exchange,
                )
            self._check_delivery(record, self.of(record), Delivery(count, exchange))
        self.delivered_records += len(offsets)

    def _check_delivery(self, record: RecordPosition, known: RecordHistory, new: Delivery) -> None:
        exchange = new.exchange
        if known.finished_at is not None and known.finished_at <= exchange.sent:
            self._violated(
                Invariant.FINISHED_ONCE,
                f"{record} was {[one.name for one in known.final]}, answered at {known.finished_at}, "
                f"and is delivered again",
                exchange,
            )
        if known.stored_count is not None:
            answered, count = known.stored_count
            if answered <= exchange.sent and new.count <= count:
                self._violated(
                    Invariant.DELIVERY_COUNTS,
                    f"{record} is delivered for the {new.count}. time after it was released in its {count}. delivery",
                    exchange,
                )
        self._check_rest(record, known.rest, exchange)
        for one in known.deliveries:
            self._check_order(record, one, new)
        known.deliveries.append(new)
        self._check_number(record, known, exchange)

    def _check_rest(self, record: RecordPosition, rest: Rest | None, exchange: Exchange) -> None:
        if rest is None or rest.answered > exchange.sent or rest.ends_wall_ms is None:
            return
        if exchange.clock_set_at > rest.answered:  # if it was set back far, the record is delivered at once
            return
        if exchange.received < rest.ends and exchange.highest_wall_ms < rest.ends_wall_ms:
            self._violated(
                Invariant.RESTS, f"{record} is delivered {rest.ends - exchange.received:.3f} s too early", exchange
            )

    def _check_order(self, record: RecordPosition, before: Delivery, new: Delivery) -> None:
        tenure = new.exchange.tenure
        if tenure is None or before.exchange.tenure != tenure:
            return
        if before.count == new.count:
            self._violated(
                Invariant.ONE_HOLDER,
                f"{record} is delivered for the {new.count}. time to {before.exchange.member}, too",
                new.exchange,
            )
        if before.exchange.received <= new.exchange.sent and new.count < before.count:
            self._violated(
                Invariant.DELIVERY_COUNTS,
                f"{record} is delivered for the {new.count}. time after the {before.count}. time",
                new.exchange,
            )

    def _check_number(self, record: RecordPosition, known: RecordHistory, exchange: Exchange) -> None:
        number = sum(one.exchange.tenure is not None for one in known.deliveries)
        tenures = self._tenures_of(record.place)
        if number > self.rules.delivery_limit + tenures:
            self._violated(
                Invariant.DELIVERY_COUNTS,
                f"{record} is delivered {number} times in {tenures} tenures, the limit is {self.rules.delivery_limit}",
                exchange,
            )

    # Holding

    def held(self, record: RecordPosition, count: int, exchange: Exchange, until: float) -> None:
        """Its member has held a record from `exchange` (a delivery or renewal) `until` now, or until its lock ended."""
        ends = min(until, exchange.sent + self.rules.lock_ms / 1000 * CLOCK_ERROR)
        for one in self.of(record).deliveries:
            other = one.exchange
            if other.tenure == exchange.tenure is not None and one.count > count and other.received < ends:
                self._violated(
                    Invariant.ONE_HOLDER,
                    f"{record} is delivered to {other.member} at {other.received}, while {exchange.member} holds it",
                    exchange,
                )

    def is_locked(self, since: Exchange, exchange: Exchange) -> bool:
        """Whether what was locked `since` a delivery or renewal was still locked when a request was answered."""
        return exchange.received < since.sent + self.rules.lock_ms / 1000 * CLOCK_ERROR

    # Acknowledgements

    def acknowledging(self, records: Iterable[tuple[RecordPosition, Acknowledge]]) -> None:
        """Acknowledgements are about to be sent: from now on they may take effect."""
        for record, kind in records:
            if kind in FINAL:
                self.of(record).final[kind] = None

    def acknowledged(
        self, record: RecordPosition, kind: Acknowledge, count: int, since: Exchange, exchange: Exchange
    ) -> None:
        """A member acknowledged a record that it has held `since` its `count`-th delivery or a renewal, and was
        answered that it counts."""
        known = self.of(record)
        if kind is Acknowledge.ACCEPT and self.is_locked(since, exchange):
            known.accepted = True
        if kind in FINAL:
            self.finished_records += known.finished_at is None
            known.finished_at = known.finished_at or exchange.received
        elif kind is Acknowledge.RELEASE:
            if known.stored_count is None or known.stored_count[1] < count:
                known.stored_count = exchange.received, count
            self._rests(known, count, exchange)

    def _rests(self, known: RecordHistory, count: int, exchange: Exchange) -> None:
        rest_ms = self.rules.backoff(count) if count < self.rules.delivery_limit else 0
        if rest_ms:
            wall_ms = None if exchange.sent_wall_ms is None else exchange.sent_wall_ms + int(rest_ms * CLOCK_ERROR)
            known.rest = Rest(exchange.received, exchange.sent + rest_ms / 1000 * CLOCK_ERROR, wall_ms)

    def _violated(self, invariant: Invariant, observed: str, exchange: Exchange) -> None:
        raise InvariantViolated(
            invariant,
            f"share group {self.group}: {observed} ({exchange.member}, {exchange.sent:.3f} to {exchange.received:.3f}, "
            f"tenure {exchange.tenure})",
        )
