"""Run the transcripts of `tests/transcripts/groups`: each line is a command, the indented lines under it what follows.

`python -m tests.unit.groups.test_transcripts` writes them anew, to be read before they are committed.
"""

from pathlib import Path

import pytest

from tailrace.groups.states import transitions
from tests.unit.groups.stage import Stage

folder = Path(__file__).parents[2] / "transcripts" / "groups"
transcripts = sorted(folder.glob("*.txt"))


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
    taken = {(move.state, move.cause) for move in stage.moves}
    assert taken == set(transitions)


if __name__ == "__main__":
    for path in transcripts:
        path.write_text(replay(path.read_text(), Stage()))
