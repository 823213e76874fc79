"""What an archive that died was at: taken up again as it was, as far as it still comes next."""

from pathlib import Path

import pytest

from tailrace.pipeline.histories.delta_log import OWN_FOLDER
from tailrace.pipeline.histories.planned_ranges import FILE_NAME, planned_earlier, remove_planned, save_planned
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def a_range(partition: TopicPartition, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


NOTED = [a_range(FIRST, 0, 5), a_range(FIRST, 5, 10), a_range(SECOND, 3, 7)]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    (tmp_path / OWN_FOLDER).mkdir()
    save_planned(tmp_path, NOTED)
    return tmp_path


def test_all_of_it_comes_next(history: Path) -> None:
    assert planned_earlier(history, {FIRST: 0, SECOND: 3}, {FIRST: 20, SECOND: 7}) == NOTED
    remove_planned(history, NOTED)
    assert planned_earlier(history, {FIRST: 0, SECOND: 3}, {FIRST: 20, SECOND: 7}) == []


def test_what_was_archived_since_or_is_not_asked_for_is_left_out(history: Path) -> None:
    assert planned_earlier(history, {FIRST: 10, SECOND: 3}, {FIRST: 20, SECOND: 7}) == NOTED[2:]
    assert planned_earlier(history, {FIRST: 0}, {FIRST: 20}) == NOTED[:2]
    assert planned_earlier(history, {FIRST: 2}, {FIRST: 20}) == []


def test_what_others_were_at_stays(history: Path) -> None:
    start, end = {FIRST: 0, SECOND: 3}, {FIRST: 20, SECOND: 7}
    save_planned(history, [a_range(FIRST, 0, 20)])
    assert planned_earlier(history, start, end) == [NOTED[2], a_range(FIRST, 0, 20)]
    remove_planned(history, [a_range(FIRST, 0, 20)])
    assert planned_earlier(history, start, end) == NOTED[2:]


def test_what_the_log_does_not_have(history: Path) -> None:
    assert planned_earlier(history, {FIRST: 0}, {FIRST: 9}) == NOTED[:1]


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", '[["t", 0]]'])
def test_a_note_that_cannot_be_read_is_none(history: Path, text: str) -> None:
    (history / OWN_FOLDER / FILE_NAME).write_text(text)
    assert planned_earlier(history, {FIRST: 0}, {FIRST: 20}) == []
