"""The transcripts of `tests/transcripts/consumer_groups`.

`python -m tests.unit.groups.consumer.test_transcripts` regenerates them; read the diff before you commit it.
"""

from pathlib import Path

import pytest

from tailrace.groups.consumer.states import STEPS
from tests.unit.groups.consumer.mixed_stage import MixedStage
from tests.unit.state_tables import replay, transcripts_of

transcripts = transcripts_of("consumer_groups")


@pytest.mark.parametrize("path", transcripts, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    assert replay(text, MixedStage()) == text


def test_every_row_of_the_state_table_is_taken() -> None:
    stage = MixedStage()
    for path in transcripts:
        replay(path.read_text(), stage)
    assert {(move.state, move.cause) for move in stage.moves} == set(STEPS)


if __name__ == "__main__":
    for path in transcripts:
        path.write_text(replay(path.read_text(), MixedStage()))
