"""The runner of the transcripts of queues: one share partition at its leader, one command at a time.

What takes effect at once is stored at once; an acknowledgement waits until the transcript says that it is written.
The next leader loads what was stored, as the share coordinator keeps it: per offset the latest of the highest
delivery count.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.model.faults import Fault
from tailrace.queues.delivery import Move
from tailrace.queues.rules import ShareRules
from tailrace.queues.runs import Run
from tailrace.queues.share_partition import (
    Acknowledge,
    Acknowledgement,
    Acquired,
    DeliveryTurn,
    SharePartition,
    Span,
    Write,
)
from tailrace.queues.state import ShareState, StateBatch
from tailrace.wire.faults import error_of
from tests.unit.state_tables import Command, carry_out, label

T = TypeVar("T")
KINDS = {
    "accepts": Acknowledge.ACCEPT,
    "releases": Acknowledge.RELEASE,
    "rejects": Acknowledge.REJECT,
    "renews": Acknowledge.RENEW,
    "has no record at": Acknowledge.GAP,
}


class Stage:
    def __init__(self) -> None:
        self.moves: dict[Move, None] = {}  # the transitions taken so far, in all transcripts
        self.begin("")

    def begin(self, _: str) -> None:
        self.rules = ShareRules(delivery_limit=3)
        self.now_ms = 0
        self.spans: list[Span] = []
        self.stored: dict[int, StateBatch] = {}
        self.start = 0
        self.write: Write | None = None
        self.lines: list[str] = []
        self.share = SharePartition(self._state(), self._new_turn())

    def play(self, line: str) -> list[str]:
        self.lines = []
        command = carry_out(COMMANDS, self, line)
        return self.lines or ([] if command in WITHOUT_OUTCOME else ["nothing happens"])

    # The log and the group's settings

    def append(self, kind: str, offsets: str) -> None:
        self.spans.append(Span(*range_of(offsets), deliverable=kind == "batch"))

    def delete(self, offset: str) -> None:
        self._turn(lambda turn: self.share.trim(int(offset), turn))

    def set_backoff(self, seconds: str, most: str) -> None:
        self.rules = replace(self.rules, backoff_ms=int(seconds) * 1000, backoff_max_ms=int(most) * 1000)

    def limit_locks(self, number: str) -> None:
        self.rules = replace(self.rules, locks_max=int(number))

    def have_dead_letters(self) -> None:
        self.rules = replace(self.rules, dead_letters=True)

    # Members

    def fetch(self, member: str, number: str, exactly: str) -> None:
        """As a ShareFetch does: from the first offset that is wanted, as much as there is in the log."""
        acquired: list[Acquired] = []

        def take(turn: DeliveryTurn) -> None:
            self.share.tick(turn)
            offset, wanted, more = 0, int(number or 500), True
            while more and wanted > 0:
                first = self.share.wanted(offset, turn)
                span = next((one for one in self.spans if first is not None and one.last >= first), None)
                if first is None or span is None:
                    return
                more = self.share.acquire(member, first, [span], wanted, acquired, turn, exact=bool(exactly))
                wanted = int(number or 500) - sum(one.last - one.first + 1 for one in acquired)
                offset = span.last + 1

        self._turn(take)
        got = ", ".join(f"{shown(one.first, one.last)} (delivery {one.deliveries})" for one in acquired)
        self.lines.append(f"{member} gets {got or 'nothing'}")

    def acknowledge(self, member: str, how: str, offsets: str) -> None:
        first, last = range_of(offsets)
        asked = [Acknowledgement(first, last, [KINDS[how]])]
        write = self._turn(lambda turn: self.share.acknowledge(member, asked, turn), member)
        if write is not None and write.batches:
            assert self.write is None, "the stage has one write under way at a time"
            self.write = write
            self.lines += [f"to be written: {described(one)}" for one in write.batches]
        elif write is not None:
            self.lines.append(f"{member} is answered: ok")

    def leave(self, member: str) -> None:
        self._turn(lambda turn: self.share.left(member, turn))

    # Writes

    def finish_write(self) -> None:
        self._finish_write(ok=True)

    def fail_write(self) -> None:
        self._finish_write(ok=False)

    def _finish_write(self, *, ok: bool) -> None:
        write, self.write = self.write, None
        assert write is not None
        if ok:
            self._store(write.batches, write)
        self._turn(lambda turn: self.share.written(write, turn, ok=ok))

    def write_dead_letters(self, offsets: str) -> None:
        self._turn(lambda turn: self.share.dead_lettered(*range_of(offsets), turn))

    # Time, state, and another leader

    def elapse(self, seconds: str) -> None:
        self.now_ms += int(seconds) * 1000
        self._turn(self.share.tick)

    def change_leader(self) -> None:
        """Another broker leads the partition: it has what was stored, and nothing else."""
        self.write = None
        turn = self._new_turn()
        self.share = SharePartition(self._state(), turn)
        self._done(turn)

    def show(self) -> None:
        self.lines.append(f"everything below {self.share.start} is finished")
        self.lines += [self._described(run) for run in self.share._runs]
        self.lines.append(f"nothing from {self.share.end} on was delivered")

    def _described(self, run: Run) -> str:
        if run.member:
            return f"{described_run(run)}, locked by {run.member} for {run.lock_until - self.now_ms / 1000:g} s"
        rests = f", rests for {(run.not_before - self.now_ms) / 1000:g} s" if run.not_before >= 0 else ""
        return described_run(run) + rests

    # Inside

    def _new_turn(self) -> DeliveryTurn:
        return DeliveryTurn(self.now_ms / 1000, self.now_ms, self.rules)

    def _turn(self, act: Callable[[DeliveryTurn], T], member: str = "") -> T | None:
        turn = self._new_turn()
        try:
            result = act(turn)
        except Fault as fault:
            self.lines.append(f"{member} is refused: {error_of(fault).name}")
            assert [turn.changed, turn.dead_letters, turn.moves] == [[], [], []], "a refused request changed something"
            return None
        self._done(turn)
        return result

    def _done(self, turn: DeliveryTurn) -> None:
        for move in turn.moves:
            self.moves[move] = None
            self.lines.append(f"{label(move.state)} → {label(move.to)}: {move.cause.value}")
        if turn.changed:
            self._store(turn.changed, None)
            self.lines += [f"stored: {described(one)}" for one in turn.changed]
        for letter in turn.dead_letters:
            why = "rejected" if letter.rejected else "delivered too often"
            self.lines.append(f"dead letters: {shown(letter.first, letter.last)}, {why}")

    def _store(self, batches: Sequence[StateBatch], write: Write | None) -> None:
        self.start, _ = self.share.progress(write)
        for batch in batches:
            for offset in range(batch.first, batch.last + 1):
                known = self.stored.get(offset)
                if known is None or (batch.count, batch.state) >= (known.count, known.state):
                    self.stored[offset] = batch._replace(first=offset, last=offset)

    def _state(self) -> ShareState:
        batches = tuple(self.stored[offset] for offset in sorted(self.stored) if offset >= self.start)
        return ShareState(state_epoch=0, start=self.start, complete_count=0, batches=batches)


def range_of(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def shown(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def described(batch: StateBatch) -> str:
    rests = f", not before {batch.not_before / 1000:g} s" if batch.not_before >= 0 else ""
    return f"{shown(batch.first, batch.last)} {label(batch.state)}, {deliveries(batch.count)}{rests}"


def described_run(run: Run) -> str:
    how = "finished" if run.is_finished else label(run.state)
    return f"{shown(run.first, run.last)} {how}" + ("" if run.is_finished else f", {deliveries(run.count)}")


def deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count} deliveries"


OFFSETS = r"(\d+(?:-\d+)?)"
COMMANDS: dict[str, Command] = {
    r"begin(.*)": Stage.begin,
    rf"a (batch|control batch) has offsets? {OFFSETS}": Stage.append,
    r"the log is deleted up to (\d+)": Stage.delete,
    r"the backoff is (\d+) s, at most (\d+) s": Stage.set_backoff,
    r"at most (\d+) records may be locked": Stage.limit_locks,
    r"there is a dead letter topic": Stage.have_dead_letters,
    r"(\w+) fetches(?: (\d+) records?)?(, exactly)?": Stage.fetch,
    rf"(\w+) ({'|'.join(KINDS)}) {OFFSETS}": Stage.acknowledge,
    r"(\w+) leaves": Stage.leave,
    r"it is written": Stage.finish_write,
    r"it cannot be written": Stage.fail_write,
    rf"the dead letters? of {OFFSETS} (?:is|are) written": Stage.write_dead_letters,
    r"(\d+) s pass": Stage.elapse,
    r"another broker becomes leader": Stage.change_leader,
    r"show": Stage.show,
}
WITHOUT_OUTCOME = (
    Stage.begin,
    Stage.append,
    Stage.set_backoff,
    Stage.limit_locks,
    Stage.have_dead_letters,
    Stage.change_leader,
)
