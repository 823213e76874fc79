"""What an archive that died was at: taken up again as it was, as far as it still comes next."""

from pathlib import Path

import pytest

from tailrace.pipeline.histories.delta_log import own_folder
from tailrace.pipeline.histories.under_way import forget, left_over, name, note
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import Range

first, second = TopicPartition("t", 0), TopicPartition("t", 1)


def a_range(partition: TopicPartition, start: int, end: int) -> Range:
    return Range(partition=partition, start=start, end=end)


noted = [a_range(first, 0, 5), a_range(first, 5, 10), a_range(second, 3, 7)]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    (tmp_path / own_folder).mkdir()
    note(tmp_path, noted)
    return tmp_path


def test_all_of_it_comes_next(history: Path) -> None:
    assert left_over(history, {first: 0, second: 3}, {first: 20, second: 7}) == noted
    forget(history, noted)
    assert left_over(history, {first: 0, second: 3}, {first: 20, second: 7}) == []


def test_what_was_archived_since_or_is_not_asked_for_is_left_out(history: Path) -> None:
    assert left_over(history, {first: 10, second: 3}, {first: 20, second: 7}) == noted[2:]
    assert left_over(history, {first: 0}, {first: 20}) == noted[:2]
    assert left_over(history, {first: 2}, {first: 20}) == []


def test_what_others_were_at_stays(history: Path) -> None:
    start, end = {first: 0, second: 3}, {first: 20, second: 7}
    note(history, [a_range(first, 0, 20)])
    assert left_over(history, start, end) == [noted[2], a_range(first, 0, 20)]
    forget(history, [a_range(first, 0, 20)])
    assert left_over(history, start, end) == noted[2:]


def test_what_the_log_does_not_have(history: Path) -> None:
    assert left_over(history, {first: 0}, {first: 9}) == noted[:1]


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", '[["t", 0]]'])
def test_a_note_that_cannot_be_read_is_none(history: Path, text: str) -> None:
    (history / own_folder / name).write_text(text)
    assert left_over(history, {first: 0}, {first: 20}) == []
