"""The runner of the transcripts of transactions: one coordinator, one transactional id `x`, one command at a time.

The records of a turn are replayed at once, as the driver does. A producer remembers its producer id and epoch, shown as
`1000/0`. Producers use transactions v1 unless the transcript says v2. Markers are written when the transcript says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.transactions.records import Entry
from tailrace.transactions.states import Move
from tailrace.transactions.transaction import LAST_EPOCH, NOTHING, Producer, Transaction, entry
from tailrace.transactions.transactions import Transactions
from tailrace.transactions.turn import Markers, Rules, TransactionTurn
from tailrace.wire.faults import error_of
from tests.unit.state_tables import Command, outcome

T = TypeVar("T")
TRANSACTIONAL_ID = "x"
STEP_MS = 10


class Stage:
    def __init__(self) -> None:
        self.moves: dict[Move, None] = {}  # the transitions taken so far, in all transcripts
        self.begin("")

    def begin(self, _: str) -> None:
        self.rules = Rules(max_timeout_ms=900_000, expiration_ms=600_000)
        self.now_ms = 1_000_000
        self.machine = Transactions()
        self.log: list[Entry] = []
        self.sent: list[Markers] = []
        self.known: dict[str, Producer] = {}  # by name: the id and epoch that a producer remembers
        self.versions: dict[str, int] = {}  # by name: of transactions
        self.next_id = 1000
        self.lines: list[str] = []

    def play(self, line: str) -> list[str]:
        return outcome(commands, WITHOUT_OUTCOME, self, line)

    # Producers

    def use_version(self, name: str, version: str) -> None:
        self.versions[name] = int(version)

    def initialise(self, name: str, seconds: str) -> None:
        self._init(name, None, seconds)

    def bump_epoch(self, name: str, as_other: str) -> None:
        """InitProducerId with the producer's id and epoch (KIP-360)."""
        self._init(name, self._producer(name, as_other), "")

    def _init(self, name: str, expected: Producer | None, seconds: str) -> None:
        timeout_ms, new_id = int(seconds or 60) * 1000, NOTHING
        if self.machine.needs_id(TRANSACTIONAL_ID):
            new_id, self.next_id = self.next_id, self.next_id + 1
        answer = self._turn(lambda turn: self.machine.init(TRANSACTIONAL_ID, timeout_ms, expected, new_id, turn), name)
        if isinstance(answer, Producer):
            self.known[name] = answer
            self.lines.append(f"{name} is answered: {shown(answer)}")

    def add(self, name: str, places: str, as_other: str) -> None:
        producer, version = self._producer(name, as_other), self._version(name)
        wanted = [place_of(one) for one in places.split()]
        self._turn(lambda turn: self.machine.add(TRANSACTIONAL_ID, producer, wanted, version, turn), name, "ok")

    def verify(self, name: str, places: str, as_other: str) -> None:
        producer, wanted = self._producer(name, as_other), [place_of(one) for one in places.split()]
        missing = self._turn(lambda turn: self.machine.missing(TRANSACTIONAL_ID, producer, wanted), name)
        if missing is not None:
            names = " ".join(f"{one.topic}-{one.partition}" for one in missing)
            self.lines.append(f"{name} is answered: {f'{names} not' if names else 'all are'} in the transaction")

    def end(self, name: str, how: str, as_other: str) -> None:
        producer, committed = self._producer(name, as_other), how == "commits"
        new_id = NOTHING
        if self.machine.needs_id(TRANSACTIONAL_ID):
            new_id, self.next_id = self.next_id, self.next_id + 1
        version = self._version(name)
        answer = self._turn(
            lambda turn: self.machine.end(TRANSACTIONAL_ID, producer, committed, version, new_id, turn), name
        )
        if answer is not None:
            self.lines.append(f"{name} is answered: ok" + (f", {shown(answer)}" if version > 1 else ""))
            if version > 1:
                self.known[name] = answer

    def be_zombie(self, name: str, other: str) -> None:
        self.known[name] = self.known[other]

    # Markers, and another coordinator

    def write_all_markers(self) -> None:
        for one in self.sent:
            self._marked(one, one.places)

    def write_marker(self, place: str, which: str) -> None:
        self._marked(self.sent[0 if which == "first" else -1], [place_of(place)])

    def _marked(self, markers: Markers, places: Sequence[PartitionName]) -> None:
        self._turn(lambda turn: self.machine.marked(markers, places, turn))

    def fail_over(self) -> None:
        """Another broker becomes the coordinator: it has the log, and nothing else."""
        self.machine = Transactions()
        for record in self.log:
            self.machine.replay(record)
        self._turn(lambda turn: self.machine.serve(turn))

    def exhaust(self, name: str) -> None:
        """Many transactions later: the epoch is the last one of the producer id."""
        last = replace(self.machine.find(TRANSACTIONAL_ID), epoch=LAST_EPOCH)
        self.log.append(entry(last))
        self.machine.replay(self.log[-1])
        self.known[name] = last.producer

    # Time and state

    def elapse(self, seconds: str) -> None:
        until = self.now_ms + int(seconds) * 1000
        while self.now_ms < until:
            self.now_ms += STEP_MS
            self._turn(lambda turn: self.machine.ring(turn))

    def expire(self) -> None:
        self._turn(lambda turn: self.machine.expire([TRANSACTIONAL_ID], turn))

    def show(self) -> None:
        transaction = self.machine.transactions.get(TRANSACTIONAL_ID)
        self.lines.append("no transactional id x" if transaction is None else described(transaction))

    # Inside

    def _producer(self, name: str, as_other: str) -> Producer:
        return producer_of(as_other) if as_other else self.known[name]

    def _version(self, name: str) -> int:
        return self.versions.get(name, 1)

    def _turn(self, act: Callable[[TransactionTurn], T], name: str = "", answer: str = "") -> T | None:
        turn = TransactionTurn(
            now=self.now_ms / 1000, wall_ms=self.now_ms, rules=self.rules, alarms=self.machine.alarms
        )
        try:
            result = act(turn)
        except Fault as fault:
            self.lines.append(f"{name} is refused: {error_of(fault).name}")
            assert [turn.records, turn.markers, turn.moves] == [[], [], []], "a refused request changed something"
            return None
        self._done(turn)
        if answer:
            self.lines.append(f"{name} is answered: {answer}")
        return result

    def _done(self, turn: TransactionTurn) -> None:
        for _, move in turn.moves:
            self.moves[move] = None
            self.lines.append(f"{move.state.value} → {move.to.value}: {move.cause.value}")
        for record in turn.records:
            self.log.append(record)
            self.machine.replay(record)
            if record.value is None:
                self.lines.append(f"tombstone: {record.key.transactional_id}")
            else:
                self.lines.append(f"record: {described(self.machine.find(TRANSACTIONAL_ID))}")
        for markers in turn.markers:
            self.sent.append(markers)
            places = " ".join(f"{one.topic}-{one.partition}" for one in markers.places)
            how = "commit" if markers.committed else "abort"
            self.lines.append(f"markers: {how} of {shown(markers.producer)} to {places}")


def place_of(text: str) -> PartitionName:
    topic, _, partition = text.rpartition("-")
    return PartitionName(topic, int(partition))


def producer_of(text: str) -> Producer:
    return Producer(*map(int, text.split("/")))


def shown(producer: Producer) -> str:
    return f"{producer.id}/{producer.epoch}"


def described(transaction: Transaction) -> str:
    places = " ".join(f"{one.topic}-{one.partition}" for one in transaction.places)
    after = f", then {transaction.next_producer_id}" if transaction.next_producer_id != NOTHING else ""
    return f"{transaction.state.value} of {shown(transaction.producer)}{after}" + (f", {places}" if places else "")


AS_OTHER = r"(?: as (\d+/-?\d+))?"
commands: dict[str, Command] = {
    r"begin(.*)": Stage.begin,
    r"(\w+) uses transactions v(\d)": Stage.use_version,
    r"(\w+) initialises(?:, timeout (\d+) s)?": Stage.initialise,
    rf"(\w+) bumps its epoch{AS_OTHER}": Stage.bump_epoch,
    rf"(\w+) adds (.+?){AS_OTHER}": Stage.add,
    rf"(\w+) verifies (.+?){AS_OTHER}": Stage.verify,
    rf"(\w+) (commits|aborts){AS_OTHER}": Stage.end,
    r"(\w+) is a zombie of (\w+)": Stage.be_zombie,
    r"all markers are written": Stage.write_all_markers,
    r"the marker of (\S+) is written(?:, for the (first) end)?": Stage.write_marker,
    r"another broker becomes coordinator": Stage.fail_over,
    r"(\w+) reaches its last epoch": Stage.exhaust,
    r"(\d+) s pass": Stage.elapse,
    r"transactional ids expire": Stage.expire,
    r"show": Stage.show,
}
WITHOUT_OUTCOME = (Stage.begin, Stage.use_version, Stage.be_zombie, Stage.exhaust)
