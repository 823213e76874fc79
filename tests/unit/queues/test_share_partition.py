"""Single rules of the share partition, by example; `test_share_partition_model` has the rest."""

from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import Acquired, DeliveryTurn, SharePartition, Span
from tailrace.queues.state import DeliveryState, ShareState, StateBatch

RULES = ShareRules(backoff_ms=100, backoff_max_ms=400)
NOW_MS = 1_000_000


def at(wall_ms: int) -> DeliveryTurn:
    return DeliveryTurn(wall_ms / 1000, wall_ms, RULES)


def resting(until_ms: int, loaded_at_ms: int) -> SharePartition:
    """One record that was delivered twice and rests."""
    batch = StateBatch(0, 0, DeliveryState.AVAILABLE, 2, until_ms)
    return SharePartition(ShareState(state_epoch=1, start=0, complete_count=0, batches=(batch,)), at(loaded_at_ms))


def taken(machine: SharePartition, turn: DeliveryTurn) -> list[Acquired]:
    machine.tick(turn)
    acquired: list[Acquired] = []
    machine.acquire("ada", 0, [Span(0, 0)], 10, acquired, turn, exact=False)
    return acquired


def test_a_record_rests_by_the_clock_of_its_leader() -> None:
    machine = resting(NOW_MS + 200, NOW_MS)
    assert taken(machine, at(NOW_MS + 199)) == []
    assert taken(machine, at(NOW_MS + 200)) == [Acquired(0, 0, 3)]


def test_a_leader_whose_clock_is_behind_does_not_let_a_record_rest_longer_than_its_backoff() -> None:
    """The leader before had set `not_before` with a clock that was ten minutes ahead."""
    machine = resting(NOW_MS + 600_000, NOW_MS)
    assert machine.alarm[1] == NOW_MS + 200
    assert taken(machine, at(NOW_MS + 199)) == []
    assert taken(machine, at(NOW_MS + 200)) == [Acquired(0, 0, 3)]


def test_without_a_delivery_limit_only_rejected_records_are_given_up() -> None:
    rules = ShareRules(delivery_limit=0, dead_letters=True)
    turn = DeliveryTurn(NOW_MS / 1000, NOW_MS, rules)
    often, waiting = (
        StateBatch(0, 0, DeliveryState.AVAILABLE, 30_000),
        StateBatch(1, 1, DeliveryState.ARCHIVING, 30_000),  # the leader before has archived it
    )
    machine = SharePartition(ShareState(state_epoch=1, start=0, complete_count=0, batches=(often, waiting)), turn)
    assert [(one.first, one.rejected) for one in turn.dead_letters] == [(1, True)]
    acquired: list[Acquired] = []
    machine.acquire("ada", 0, [Span(0, 0)], 10, acquired, turn, exact=False)
    assert acquired == [Acquired(0, 0, 30_001)]
    machine.left("ada", turn)
    assert next(iter(machine.runs)).state is DeliveryState.AVAILABLE
    assert len(turn.dead_letters) == 1


def test_a_clock_that_is_set_back_does_not_keep_a_record_resting() -> None:
    machine = resting(NOW_MS + 200, NOW_MS)
    assert taken(machine, at(NOW_MS - 600_000)) == [Acquired(0, 0, 3)]


def test_what_was_not_delivered_is_given_back_without_the_rest_that_the_member_holds() -> None:
    machine = SharePartition(ShareState(state_epoch=1, start=0, complete_count=0), at(NOW_MS))
    before: list[Acquired] = []
    machine.acquire("ada", 0, [Span(0, 1)], 10, before, at(NOW_MS), exact=False)
    late: list[Acquired] = []
    machine.acquire("ada", 2, [Span(2, 3)], 10, late, at(NOW_MS), exact=False)
    machine.not_delivered("ada", late, at(NOW_MS))
    assert [(run.first, run.last, run.state) for run in machine.runs] == [
        (0, 1, DeliveryState.ACQUIRED),
        (2, 3, DeliveryState.AVAILABLE),
    ]
