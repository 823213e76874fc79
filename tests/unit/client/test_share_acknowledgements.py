"""`Acknowledgements`: ranges of a request, and what becomes of refused ones."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.shares.acknowledgements import Acknowledgements, Batches, Decision
from tailrace.client.shares.message import Outcome
from tailrace.model.ids import Id, TopicPartition
from tailrace.wire.errors import Error

P, Q = TopicPartition(Id(b"a" * 16), 0), TopicPartition(Id(b"a" * 16), 1)
NOW, LATER = 1.0, 9.0


def deciding(*offsets: int, outcome: Outcome = Outcome.ACCEPT) -> Acknowledgements:
    said = Acknowledgements()
    for offset in offsets:
        said.add(P, Decision(offset, outcome, LATER, offset))
    return said


def ranges(batches: Batches, partition: TopicPartition = P) -> list[tuple[int, int, tuple[int, ...]]]:
    found = batches.get(partition, ())
    return [(one.first_offset, one.last_offset, tuple(one.acknowledge_types)) for one in found]


def test_neighbours_with_the_same_outcome_are_one_range() -> None:
    said = deciding(5, 3, 4, 8)
    said.add(P, Decision(9, Outcome.REJECT))
    said.add(Q, Decision(0, Outcome.GAP))
    batches = said.take()
    assert ranges(batches) == [(3, 5, (1,)), (8, 8, (1,)), (9, 9, (3,))]
    assert ranges(batches, Q) == [(0, 0, (0,))]
    assert not len(said)


def test_a_decision_replaces_a_renewal_that_was_not_sent() -> None:
    said = deciding(3, outcome=Outcome.RENEW)
    replaced = said.add(P, Decision(3, Outcome.ACCEPT))
    assert replaced is not None
    assert replaced.outcome is Outcome.RENEW
    assert ranges(said.take()) == [(3, 3, (1,))]
    assert not said.renews


def test_each_result_comes_back_with_its_token() -> None:
    said = deciding(1, 2)
    said.take()
    assert said.is_sent
    settled = said.answered({P: Error.NONE}, NOW)
    assert [(one.decision.token, one.error) for one in settled] == [(1, Error.NONE), (2, Error.NONE)]
    assert not said.is_sent


def test_a_refusal_that_may_pass_is_retried_until_the_lock_ends() -> None:
    said = deciding(1)
    said.take()
    assert said.answered({P: Error.COORDINATOR_NOT_AVAILABLE}, NOW) == []
    assert ranges(said.take()) == [(1, 1, (1,))]
    (settled,) = said.answered({P: Error.COORDINATOR_NOT_AVAILABLE}, LATER)
    assert settled.error is Error.COORDINATOR_NOT_AVAILABLE
    assert not len(said)


def test_what_the_broker_does_not_mention_is_retried() -> None:
    said = deciding(1)
    said.take()
    assert said.answered({}, NOW) == []
    assert len(said) == 1


def test_a_leader_that_moved_has_lost_its_locks() -> None:
    said = deciding(1)
    said.take()
    (settled,) = said.answered({P: Error.NOT_LEADER_OR_FOLLOWER}, NOW)
    assert settled.error is Error.NOT_LEADER_OR_FOLLOWER


def test_without_a_response_nothing_is_repeated_and_nothing_more_is_sent() -> None:
    said = deciding(1, 2)
    said.take()
    said.add(P, Decision(3, Outcome.ACCEPT, LATER))
    assert [one.decision.offset for one in said.abandoned(Error.NETWORK_EXCEPTION)] == [1, 2, 3]
    assert said.take() == {}


def test_a_request_that_was_refused_as_a_whole_is_repeated() -> None:
    said = deciding(1, 2)
    said.take()
    assert said.refused(Error.SHARE_SESSION_NOT_FOUND, NOW) == []
    assert ranges(said.take()) == [(1, 2, (1,))]


@given(
    offsets=st.sets(st.integers(0, 40), min_size=1),
    ended=st.sets(st.integers(0, 40)),
    outcomes=st.dictionaries(st.integers(0, 40), st.sampled_from([Outcome.ACCEPT, Outcome.RELEASE, Outcome.RENEW])),
)
def test_only_what_has_no_lock_is_refused(offsets: set[int], ended: set[int], outcomes: Mapping[int, Outcome]) -> None:
    """The broker takes all acknowledgements of a partition or none, and refuses if one has no lock."""
    said = Acknowledgements()
    for offset in offsets:
        said.add(P, Decision(offset, outcomes.get(offset, Outcome.ACCEPT), LATER, offset))
    results: dict[int, Error] = {}
    requests = 0
    while len(said):
        requests += 1
        asked = [offset for first, last, _ in ranges(said.take()) for offset in range(first, last + 1)]
        error = Error.INVALID_RECORD_STATE if ended.intersection(asked) else Error.NONE
        for one, result in said.answered({P: error}, NOW):
            assert one.token not in results
            results[one.token] = result
    expected = {one: Error.INVALID_RECORD_STATE if one in ended else Error.NONE for one in offsets}
    assert results == expected
    assert requests <= 1 + 2 * len(ended & offsets) * len(offsets).bit_length()
