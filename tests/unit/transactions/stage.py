"""The runner of transcripts: one coordinator of transactions, one command at a time, for one transactional id, `x`.

Whatever a turn writes is replayed at once, as the shell does. A producer remembers the id and epoch that it was told,
shown as `1000/0`. Producers speak transactions v1 unless they are told to speak v2. Markers that are sent arrive when
the transcript says so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.transactions.records import Entry
from tailrace.transactions.states import Move
from tailrace.transactions.transaction import LAST_EPOCH_OF_AN_ID, NOTHING, Producer, Transaction, entry
from tailrace.transactions.transactions import Transactions
from tailrace.transactions.turn import Markers, Rules, TransactionTurn
from tailrace.wire.faults import error_of

T = TypeVar("T")
NAME = "x"
STEP_MS = 10


class Stage:
    def __init__(self) -> None:
        self.moves: dict[Move, None] = {}  # rows of the state table that were taken
        self.begin("")

    def begin(self, _: str) -> None:
        self.rules = Rules(max_timeout_ms=900_000, expiration_ms=600_000)
        self.now_ms = 1_000_000
        self.machine = Transactions()
        self.log: list[Entry] = []
        self.sent: list[Markers] = []
        self.known: dict[str, Producer] = {}
        self.speaks: dict[str, int] = {}
        self.next_id = 1000
        self.lines: list[str] = []

    def play(self, line: str) -> list[str]:
        self.lines = []
        for pattern, command in commands.items():
            found = re.fullmatch(pattern, line)
            if found:
                command(self, *found.groups(default=""))
                return self.lines or ([] if command in SPEECHLESS else ["nothing"])
        raise ValueError(f"no such command: {line}")

    # Producers

    def speak(self, who: str, version: str) -> None:
        self.speaks[who] = int(version)

    def come(self, who: str, seconds: str) -> None:
        self._init(who, None, seconds)

    def go_on(self, who: str, said: str) -> None:
        self._init(who, self._who(who, said), "")

    def _init(self, who: str, expected: Producer | None, seconds: str) -> None:
        timeout_ms, new_id = int(seconds or 60) * 1000, NOTHING
        if self.machine.needs_id(NAME):
            new_id, self.next_id = self.next_id, self.next_id + 1
        given = self._turn(lambda turn: self.machine.init(NAME, timeout_ms, expected, new_id, turn), who)
        if isinstance(given, Producer):
            self.known[who] = given
            self.lines.append(f"{who} is told: {shown(given)}")

    def add(self, who: str, places: str, said: str) -> None:
        producer, wanted = self._who(who, said), [placed(one) for one in places.split()]
        self._turn(lambda turn: self.machine.add(NAME, producer, wanted, self._version(who), turn), who, "added")

    def verify(self, who: str, places: str, said: str) -> None:
        producer, wanted = self._who(who, said), [placed(one) for one in places.split()]
        missing = self._turn(lambda turn: self.machine.missing(NAME, producer, wanted), who)
        if missing is not None:
            rest = " ".join(f"{one.topic}-{one.partition}" for one in missing)
            self.lines.append(f"{who} is told: {f'{rest} is none' if rest else 'all are'} of its transaction")

    def end(self, who: str, how: str, said: str) -> None:
        producer, committed = self._who(who, said), how == "commits"
        new_id = NOTHING
        if self.machine.needs_id(NAME):
            new_id, self.next_id = self.next_id, self.next_id + 1
        version = self._version(who)
        told = self._turn(lambda turn: self.machine.end(NAME, producer, committed, version, new_id, turn), who)
        if told is not None:
            self.lines.append(f"{who} is told: done" + (f", {shown(told)}" if version > 1 else ""))
            if version > 1:
                self.known[who] = told

    def pose(self, who: str, other: str) -> None:
        self.known[who] = self.known[other]

    # Markers, and another coordinator

    def arrive(self) -> None:
        for one in self.sent:
            self._marked(one, one.places)

    def mark(self, places: str, which: str) -> None:
        wanted = [placed(one) for one in places.split()]
        self._marked(self.sent[0 if which == "first" else -1], wanted)

    def _marked(self, markers: Markers, places: Sequence[PartitionName]) -> None:
        self._turn(lambda turn: self.machine.marked(markers, places, turn))

    def reload(self) -> None:
        """Another broker takes over: it knows the log, and nothing else."""
        self.machine = Transactions()
        for record in self.log:
            self.machine.replay(record)
        self._turn(lambda turn: self.machine.serve(turn))

    def exhaust(self, who: str) -> None:
        """Many transactions later: the epoch is the last of its id."""
        last = replace(self.machine.find(NAME), epoch=LAST_EPOCH_OF_AN_ID)
        self.log.append(entry(last))
        self.machine.replay(self.log[-1])
        self.known[who] = last.producer

    # Time, and looking

    def elapse(self, seconds: str) -> None:
        until = self.now_ms + int(seconds) * 1000
        while self.now_ms < until:
            self.now_ms += STEP_MS
            self._turn(lambda turn: self.machine.ring(turn))

    def expire(self) -> None:
        self._turn(lambda turn: self.machine.expire([NAME], turn))

    def show(self) -> None:
        transaction = self.machine.transactions.get(NAME)
        self.lines.append("nobody has used x" if transaction is None else described(transaction))

    # Inside

    def _who(self, who: str, said: str) -> Producer:
        return producer_of(said) if said else self.known[who]

    def _version(self, who: str) -> int:
        return self.speaks.get(who, 1)

    def _turn(self, act: Callable[[TransactionTurn], T], who: str = "", told: str = "") -> T | None:
        turn = TransactionTurn(
            now=self.now_ms / 1000, wall_ms=self.now_ms, rules=self.rules, alarms=self.machine.alarms
        )
        try:
            result = act(turn)
        except Fault as fault:
            self.lines.append(f"{who} is refused: {error_of(fault).name}")
            assert [turn.records, turn.markers, turn.moves] == [[], [], []], "a refusal changes nothing"
            return None
        self._done(turn)
        if told:
            self.lines.append(f"{who} is told: {told}")
        return result

    def _done(self, turn: TransactionTurn) -> None:
        for _, move in turn.moves:
            self.moves[move] = None
            self.lines.append(f"{move.state.value} → {move.to.value}: {move.cause.value}")
        for record in turn.records:
            self.log.append(record)
            self.machine.replay(record)
            forgotten = record.value is None
            self.lines.append(f"written: {'x is forgotten' if forgotten else described(self.machine.find(NAME))}")
        for markers in turn.markers:
            self.sent.append(markers)
            places = " ".join(f"{one.topic}-{one.partition}" for one in markers.places)
            how = "commit" if markers.committed else "abort"
            self.lines.append(f"sent: {how} of {shown(markers.producer)} to {places}")


def placed(text: str) -> PartitionName:
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
commands: dict[str, Callable[..., None]] = {
    r"begin(.*)": Stage.begin,
    r"(\w+) speaks v(\d)": Stage.speak,
    r"(\w+) comes(?:, with (\d+) s)?": Stage.come,
    rf"(\w+) goes on{AS_OTHER}": Stage.go_on,
    rf"(\w+) adds (.+?){AS_OTHER}": Stage.add,
    rf"(\w+) verifies (.+?){AS_OTHER}": Stage.verify,
    rf"(\w+) (commits|aborts){AS_OTHER}": Stage.end,
    r"(\w+) is a zombie of (\w+)": Stage.pose,
    r"the markers arrive": Stage.arrive,
    r"(.+?) (?:is|are) marked(?: by the (first) markers)?": Stage.mark,
    r"another broker takes over": Stage.reload,
    r"(\w+) has come to its last epoch": Stage.exhaust,
    r"(\d+) s pass": Stage.elapse,
    r"unused names are looked for": Stage.expire,
    r"show": Stage.show,
}
SPEECHLESS = (Stage.begin, Stage.speak, Stage.pose, Stage.exhaust)
