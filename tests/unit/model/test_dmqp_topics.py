"""The table of topic ids."""

import pytest

from tailrace.model.dmqp_topics import is_topic_table, parse_topic_table
from tailrace.model.settings import SettingError, Settings


def test_a_table_names_topics_by_id() -> None:
    assert parse_topic_table("") == {}
    assert parse_topic_table(" 3 = orders, 255=mails.of_2026-a") == {3: "orders", 255: "mails.of_2026-a"}


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "3=",
        "=a",
        "256=a",
        "-1=a",
        "x=a",
        "3=a,3=b",
        "3=a,4=a",
        "3=a b",
        "3=..",
        "3=__consumer_offsets",
        "3=a,",
        "٣=a",
    ],
)
def test_what_is_no_table(text: str) -> None:
    assert not is_topic_table(text)
    with pytest.raises(SettingError, match=r"dmqp\.topics"):
        Settings(dmqp_topics=text)
