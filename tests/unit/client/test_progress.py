"""`Progress`: what is committed is never more than what was processed."""

from tailrace.client.groups.progress import Progress
from tailrace.model.ids import PartitionName

FIRST, SECOND = PartitionName("t", 0), PartitionName("t", 1)


def begun() -> Progress:
    progress = Progress()
    progress.begin({FIRST: 10, SECOND: 0}, {FIRST: 10})
    return progress


def test_a_start_without_a_commit_is_committed() -> None:
    assert begun().to_commit() == {SECOND: 0}


def test_records_are_processed_when_the_application_comes_back() -> None:
    progress = begun()
    progress.returned({FIRST: 15, SECOND: 0})
    assert progress.to_commit() == {SECOND: 0}
    progress.came_back()
    assert progress.to_commit() == {FIRST: 15, SECOND: 0}
    progress.committed({FIRST: 15, SECOND: 0})
    assert progress.to_commit() == {}


def test_released_partitions_are_forgotten() -> None:
    progress = begun()
    progress.returned({FIRST: 15, SECOND: 3})
    progress.release([FIRST])
    progress.came_back()
    progress.committed({FIRST: 15})  # an answer that comes late
    assert progress.to_commit() == {SECOND: 3}
    assert progress.take_lost() == []


def test_what_is_lost_is_told_once() -> None:
    progress = begun()
    progress.committed({SECOND: 0})
    progress.returned({FIRST: 15, SECOND: 0})
    progress.lose([FIRST, SECOND])
    assert progress.take_lost() == [FIRST]  # nothing of the other was returned
    assert progress.take_lost() == []
    assert progress.to_commit() == {}


def test_what_a_failed_commit_told_is_not_told_again() -> None:
    progress = begun()
    progress.returned({FIRST: 15, SECOND: 3})
    progress.reported_lost([FIRST])
    progress.lose([FIRST, SECOND])
    assert progress.take_lost() == [SECOND]
