"""Readers of a compacted topic while it is written and compacted, again and again from its start."""

import logging
from typing import Final

import pytest

from tests.interop.client import Client
from tests.interop.compacted import assert_in_order, for_seconds
from tests.interop.feature import feature
from tests.interop.messages import Reading
from tests.interop.shapes import TopicPlan
from tests.interop.test_compacted_topics import AT_ONCE, EVERY_S, SMALL, Writer, Writing, assert_says, read_to
from tests.interop.test_compacted_topics import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients

pytestmark = pytest.mark.long

logger: Final = logging.getLogger(__name__)

READING_S: Final = 20


@feature("read a compacted topic again and again while it is written and compacted", "reader")
def test_while_it_is_compacted(client: Client, bootstrap: str, name: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(settings=SMALL))
    writer = Writer(bootstrap, name)
    writer.write(AT_ONCE)
    passes: list[int] = []

    def read_all() -> None:
        table, last = writer.table, bench.watermarks(name)[1] - 1
        with client.reader(name, Reading(fetch_bytes=20_000)) as reader:
            records = read_to(reader, last)
        assert_in_order(records)
        assert_says(records, table)
        passes.append(len(records))

    with Writing(writer):
        for_seconds(READING_S, EVERY_S, read_all)
    end = bench.watermarks(name)[1]
    logger.info("%s: %d passes of at most %d records up to offset %d", client.name, len(passes), max(passes), end)
    assert len(passes) > 5
    assert max(passes) < end / 3
