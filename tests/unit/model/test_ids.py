"""Ids are shown as in Kafka, and each id has one text form."""

import random
import uuid

import pytest

from tailrace.model.ids import NO_ID, Id, TopicPartition, parse_id, show_id
from tailrace.ports.randomness import SeededRandom

known = Id(uuid.UUID("f30bc9d4-2a1e-4d70-9c5b-0a7d11f2e6b8").bytes)


def test_an_id_is_shown_as_kafka_shows_it() -> None:
    assert show_id(known) == "8wvJ1CoeTXCcWwp9EfLmuA"
    assert show_id(NO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(TopicPartition(known, 3)) == "8wvJ1CoeTXCcWwp9EfLmuA-3"


def test_a_shown_id_can_be_parsed() -> None:
    chance = SeededRandom(random.Random(1))
    for _ in range(200):
        one = chance.new_id()
        assert parse_id(show_id(one)) == one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8wvJ1CoeTXCcWwp9EfLm",  # 15 bytes
        "8wvJ1CoeTXCcWwp9EfLmuA==",
        "8wvJ1CoeTXCcWwp9EfLmuB",  # the same bytes, with stray bits
        "8wvJ1CoeTXCcWwp9EfLmuAAA",
        "+/vJ1CoeTXCcWwp9EfLmuA",
        "8wvJ1CoeTXCcWwp9EfLmu ",
        "8wvJ1CoeTXCcWwp9EfLmué",
        "f30bc9d4-2a1e-4d70-9c5b-0a7d11f2e6b8",
    ],
)
def test_text_that_is_not_an_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        parse_id(text)
