"""ConsumerGroupHeartbeat: the limit on subscribed names. Its protocol is in the transcripts."""

import pytest

from tailrace.model.faults import GroupFull
from tailrace.model.limits import GROUP_SUBSCRIBED_NAMES_MAX
from tests.unit.groups.consumer.coordinator import Coordinator


def test_the_number_of_topics_that_members_name_is_bounded() -> None:
    coordinator = Coordinator()
    half = tuple(str(number) for number in range(GROUP_SUBSCRIBED_NAMES_MAX // 2))
    coordinator.join("a", names=half)
    coordinator.join("b", names=half)
    with pytest.raises(GroupFull, match="topics"):
        coordinator.join("c", names=("t",))
