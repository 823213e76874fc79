"""The transcripts of `tests/transcripts/transactions`.

`python -m tests.unit.transactions.test_transcripts` regenerates them; read the diff before you commit it.
"""

from pathlib import Path

import pytest

from tailrace.transactions.states import TRANSITIONS
from tests.unit.state_tables import replay, transcripts_of
from tests.unit.transactions.stage import Stage

transcripts = transcripts_of("transactions")


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
