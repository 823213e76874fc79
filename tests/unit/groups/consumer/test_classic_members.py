"""Members of the classic protocol in a consumer group: their limits, and what is kept of them."""

import pytest

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.model.faults import InconsistentProtocol
from tailrace.model.limits import GROUP_PROTOCOLS_MAX
from tests.unit.groups.consumer.coordinator import Coordinator
from tests.unit.groups.consumer.mixed_stage import MixedStage
from tests.unit.groups.stage import join_request
from tests.unit.state_tables import transcripts_of


def test_the_number_of_protocols_of_a_member_is_bounded() -> None:
    coordinator = Coordinator()
    coordinator.join("m", names=("t",))
    turn = coordinator.turn()
    most = {f"p{number}": bytes(10) for number in range(GROUP_PROTOCOLS_MAX)}
    with pytest.raises(InconsistentProtocol, match="101 protocols"):
        coordinator.groups.join("g", join_request(most | {"more": bytes(10)}), "o", "o", turn)
    coordinator.groups.join("g", join_request(most), "o", "o", turn)


def test_only_members_are_kept_as_told_to_rejoin() -> None:
    told = 0
    for path in transcripts_of("consumer_groups"):
        stage = MixedStage()
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "    ")):
                stage.play(line)
                for group in stage.groups.groups.values():
                    if isinstance(group, ConsumerGroup):
                        assert all(one in group.members for one in group.must_rejoin), (path, line)
                        told += len(group.must_rejoin)
    assert told
