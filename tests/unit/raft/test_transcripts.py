"""Run the transcripts of `tests/transcripts/raft`: each line is an event, the indented lines under it what follows."""

import re
from pathlib import Path

import pytest

from tailrace.model.ids import BrokerId, Epoch, Id, Offset
from tailrace.raft.replica import Campaign, Event, Replica, Resign, Role, Voter, VoteStored, transitions

folder = Path(__file__).parents[2] / "transcripts" / "raft"
transcripts = sorted(folder.glob("*.txt"))
me = Voter(broker=BrokerId(1), directory=Id(b"d" * 16))


class Stage:
    """One replica under a transcript's hand, and the rows of the state table that were taken."""

    def __init__(self) -> None:
        self.taken: list[tuple[Role, type[Event]]] = []

    def play(self, line: str) -> list[str]:
        numbers = [int(number) for number in re.findall(r"\d+", line)]
        match line.split()[0], numbers:
            case "replica", [epoch, end, high_watermark]:
                self.end = self.durable = end
                self.replica = Replica(
                    me=me, epoch=Epoch(epoch), log_end=Offset(end), high_watermark=Offset(high_watermark)
                )
                return []
            case "campaign", []:
                return self.step(Campaign())
            case "vote", [epoch]:
                return self.step(VoteStored(Epoch(epoch)))
            case "resign", []:
                return self.step(Resign())
            case "append", [count, durable]:
                self.end += count
                return self.progress(durable)
            case "progress", [end, durable]:
                assert end == self.end
                return self.progress(durable)
            case "durable", [durable]:
                return self.progress(durable)
        raise ValueError(f"no such event: {line}")

    def step(self, event: Event) -> list[str]:
        before = self.replica.role
        effects = self.replica.step(event)
        after = self.replica.role
        lines = []
        if before is not after:
            self.taken.append((before, type(event)))
            epoch = "" if after is Role.RESIGNED else f", epoch {self.replica.epoch}"
            lines.append(f"{before.value} → {after.value}{epoch}")
        if effects.store_vote is not None:
            vote = effects.store_vote
            lines.append(f"store the vote of epoch {vote.epoch} for broker {vote.voter.broker}")
        if effects.append_leader_change:
            lines.append("append a leader-change batch")
        return lines or ["nothing"]

    def progress(self, durable: int) -> list[str]:
        before = self.replica.high_watermark
        moved = self.replica.progress(self.end, durable)
        after = self.replica.high_watermark
        assert moved == (before != after)
        return [f"high watermark {before} → {after}" if moved else f"high watermark stays at {after}"]


def replay(text: str, stage: Stage) -> str:
    """The transcript as the code writes it."""
    lines = []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {outcome}" for outcome in stage.play(line)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", transcripts, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    assert replay(text, Stage()) == text


def test_every_row_of_the_state_table_is_taken() -> None:
    stage = Stage()
    for path in transcripts:
        replay(path.read_text(), stage)
    assert set(stage.taken) == set(transitions)
