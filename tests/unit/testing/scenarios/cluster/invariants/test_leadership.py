"""Leaders, epochs and high watermarks: each invariant accepts a correct history and refuses a violation."""

from tailrace.model.ids import BrokerId
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tailrace.testing.scenarios.cluster.invariants.leadership import Leaders, ReplicaProgress, check_undamaged
from tests.unit.testing.scenarios.cluster.invariants.observations import KEY, observation, violates


class TestLeaders:
    def test_two_leaders_of_one_epoch_at_different_times(self) -> None:
        leaders = Leaders()
        assert leaders.check(observation(1, leads=True, epoch=4))
        assert not leaders.check(observation(1, leads=True, epoch=4))
        assert leaders.check(observation(2, leads=True, epoch=5))
        assert leaders.changes == 1
        with violates(Invariant.ONE_LEADER):
            leaders.check(observation(3, leads=True, epoch=4))

    def test_a_metadata_response_that_names_another_leader(self) -> None:
        leaders = Leaders()
        leaders.check(observation(1, leads=True, epoch=4))
        leaders.check_leader(KEY, 4, BrokerId(1), "Metadata")
        with violates(Invariant.ONE_LEADER):
            leaders.check_leader(KEY, 4, BrokerId(2), "Metadata")

    def test_a_leader_that_detected_damage(self) -> None:
        check_undamaged(observation(damaged=True))
        check_undamaged(observation(damaged=True, leads=True, sole_voter=True))
        with violates(Invariant.DAMAGED):
            check_undamaged(observation(damaged=True, leads=True))


class TestReplicaProgress:
    def test_high_watermark_goes_back(self) -> None:
        progress = ReplicaProgress()
        progress.check(observation(high_watermark=5))
        progress.check(observation(high_watermark=3, opening=2))  # after a restart: the checkpointed one may lag
        with violates(Invariant.RISING):
            progress.check(observation(high_watermark=2, opening=2))

    def test_epoch_goes_back(self) -> None:
        progress = ReplicaProgress()
        progress.check(observation(epoch=5))
        with violates(Invariant.RISING):
            progress.check(observation(epoch=4))

    def test_a_leader_commits_an_entry_of_an_earlier_epoch_by_counting_replicas(self) -> None:
        progress = ReplicaProgress()
        progress.check(observation(leads=True, epoch=2, high_watermark=5))  # when it was elected
        with violates(Invariant.OWN_EPOCH):
            progress.check(observation(leads=True, epoch=2, high_watermark=6, committed_epoch=1))
        progress.check(observation(leads=True, epoch=2, high_watermark=8, committed_epoch=2))

    def test_the_log_ends_below_the_high_watermark(self) -> None:
        with violates(Invariant.PREFIX):
            ReplicaProgress().check(observation(high_watermark=8, end=7))
