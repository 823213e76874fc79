"""The transcripts of `tests/transcripts/consumer_groups`.

`python -m tests.unit.groups.test_consumer_transcripts` writes them anew, to be read before they are committed.
"""

from pathlib import Path

import pytest

from tailrace.groups.consumer.states import STEPS
from tests.unit.groups.mixed_stage import MixedStage
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
    assert {(taken.state, taken.step) for taken in stage.taken} == set(STEPS)


if __name__ == "__main__":
    for path in transcripts:
        path.write_text(replay(path.read_text(), MixedStage()))
