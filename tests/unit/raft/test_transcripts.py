"""The transcripts of `tests/transcripts/raft`.

`python -m tests.unit.raft.test_transcripts` rewrites them; read the difference before committing it.
"""

from pathlib import Path

import pytest

from tailrace.raft.roles import TRANSITIONS
from tests.unit.raft.stage import Stage
from tests.unit.state_tables import replay, transcripts_of

transcripts = transcripts_of("raft")


@pytest.mark.parametrize("path", transcripts, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    assert replay(text, Stage()) == text


def test_every_row_of_the_state_table_is_taken() -> None:
    stage = Stage()
    for path in transcripts:
        replay(path.read_text(), stage)
    assert {(move.state, move.cause) for move in stage.moves} == set(TRANSITIONS)


if __name__ == "__main__":
    for path in transcripts:
        path.write_text(replay(path.read_text(), Stage()))
