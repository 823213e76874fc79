"""Which topics consumers read, as far as they say so in a way that can be read."""

import pytest

from tailrace.groups.subscription import subscribed_topics
from tests.unit.groups.stage import subscription


def test_the_topics_of_all_members() -> None:
    assert subscribed_topics([subscription("t", "u"), subscription("u"), subscription()]) == frozenset({"t", "u"})
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", subscription("topic")[:9]])
def test_who_does_not_say_makes_them_unknown(data: bytes) -> None:
    assert subscribed_topics([subscription("t"), data]) is None
