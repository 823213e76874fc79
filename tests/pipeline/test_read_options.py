"""What a reader is asked, without Spark: options, edges, offset JSON, ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.kafka_settings import HONOURED, IGNORED, REFUSED
from tailrace.pipeline.source.offset_json import from_json, parse_offsets, to_json
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.range_planning import limit_ends, plan_ranges, take_first
from tests.pipeline.programs import root

BASIS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_an_unknown_option_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(PipelineFailed, match="no option startingoffset; did you mean startingOffsets"):
        read_options({**BASIS, "startingoffset": "earliest"}, "batch")


@pytest.mark.parametrize("name", [*IGNORED, "fetchOffset.numRetries", "kafkaConsumer.pollTimeoutMs"])
def test_what_only_tunes_is_taken_and_changes_nothing(name: str) -> None:
    assert read_options({**BASIS, name.lower(): "7"}, "batch") == read_options(BASIS, "batch")


@pytest.mark.parametrize("name", [f"{name}x" if name.endswith(".") else name for name in REFUSED])
def test_what_would_be_left_out_without_a_word_is_refused(name: str) -> None:
    with pytest.raises(PipelineFailed, match=f"{name} would have no effect, and is refused: "):
        read_options({**BASIS, name: "org.example.Theirs"}, "batch")


@pytest.mark.parametrize(("name", "harmless"), [(name, one.harmless) for name, one in REFUSED.items() if one.harmless])
def test_what_is_done_anyway_may_be_said(name: str, harmless: str) -> None:
    assert read_options({**BASIS, name: harmless}, "batch") == read_options(BASIS, "batch")


def test_a_typo_in_a_setting_of_kafkas_gets_the_nearest_one() -> None:
    with pytest.raises(PipelineFailed, match=r"did you mean kafka\.max\.poll\.interval\.ms"):
        read_options({**BASIS, "kafka.max.pol.interval.ms": "7"}, "batch")
    with pytest.raises(PipelineFailed, match=r"known are .*subscribe") as failed:
        read_options({**BASIS, "zzz": "7"}, "batch")
    assert "kafka.linger.ms" not in str(failed.value)


def test_the_page_of_kafkas_settings_names_them_all() -> None:
    page = (root / "docs" / "pipeline" / "kafka-settings.md").read_text()
    every = [name.removeprefix("kafka.") for name in (*HONOURED, *IGNORED, *REFUSED)]
    assert [name for name in every if f"`{name}`" not in page and f"`{name}*`" not in page] == []


def test_names_come_in_any_case() -> None:
    options = read_options({**{name.lower(): value for name, value in BASIS.items()}, "MINPARTITIONS": "4"}, "batch")
    assert options.min_partitions == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one of subscribe, subscribePattern, assign; given: none"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "given: subscribe and assign"),
        ({"subscribe": " "}, "subscribe is empty"),
        ({"subscribe": "a", "minPartitions": "none"}, "minPartitions = 'none': it is a whole number"),
        ({"subscribe": "a", "failOnDataLoss": "maybe"}, "failOnDataLoss = 'maybe': it is one of true, false"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "would read nothing"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "would read nothing"),
        ({"subscribe": "a", "startingOffsets": "first"}, "earliest, latest, or JSON"),
        ({"subscribe": "a", "startingOffsets": '{"a":3}'}, "write it like"),
        ({"subscribe": "a", "startingTimestamp": "today"}, "milliseconds since 1970"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "a duration is a number"),
        ({"subscribe": "a", "kafka.security.protocol": "TLS"}, "it is one of PLAINTEXT, SSL"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineFailed, match=said):
        read_options({"kafka.bootstrap.servers": "127.0.0.1:9092", **given}, "batch")


def test_a_stream_that_starts_at_latest_needs_a_query_id() -> None:
    with pytest.raises(PipelineFailed, match="needs the option queryId"):
        read_options(BASIS, "stream")
    assert read_options({**BASIS, "queryId": "bills"}, "stream").start_group.endswith("bills")
    assert read_options({**BASIS, "startingOffsets": "earliest"}, "stream").group == ""


def test_a_stream_has_no_end() -> None:
    with pytest.raises(PipelineFailed, match="endingOffsets is for batch reads"):
        read_options({**BASIS, "startingOffsets": "earliest", "endingOffsets": "latest"}, "stream")


def test_whose_group_gets_the_offsets() -> None:
    stream = {**BASIS, "startingOffsets": "earliest"}
    assert read_options({**stream, "kafka.group.id": "g", "queryId": "q"}, "stream").group == "g"
    assert read_options({**stream, "groupIdPrefix": "p", "queryId": "q"}, "stream").group == "p-q"
    assert read_options({**stream, "queryId": "q"}, "stream").group == "tailrace-spark-q"


@pytest.mark.parametrize("edge", ["starting", "ending"])
def test_which_of_three_edges_wins(edge: str) -> None:
    """As in Spark: the time for all partitions, before times by partition, before offsets."""
    told = dict(BASIS)
    found = []
    for name, value in (
        ("Offsets", '{"orders":{"0":3}}'), ("OffsetsByTimestamp", '{"orders":{"0":7}}'), ("Timestamp", "9"),
    ):  # fmt: skip
        told[f"{edge}{name}"] = value
        options = read_options(told, "batch")
        found.append((options.start if edge == "starting" else options.end).where)
    assert found == ["offsets", "times", "time"]


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), st.integers(0, 2**62)))
def test_offsets_come_back_and_are_always_written_in_order(told: dict[tuple[str, int], int]) -> None:
    offsets = {TopicPartition(*one): offset for one, offset in told.items()}
    written = to_json(offsets)
    assert from_json(written) == offsets
    assert list(from_json(written)) == sorted(offsets)


def test_what_people_write_is_read() -> None:
    assert parse_offsets("startingOffsets", '{"orders":{"0":-2,"1":7}}') == {P0: -2, P1: 7}


spans = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3)),
    st.tuples(st.integers(0, 100), st.integers(0, 100)).map(lambda two: tuple(sorted(two))),
    max_size=5,
)


@given(spans, st.none() | st.integers(1, 30), st.none() | st.integers(1, 30))
def test_pieces_cover_every_offset_once(
    told: dict[TopicPartition, tuple[int, int]], min_ranges: int | None, most: int | None
) -> None:
    start, end = {one: two[0] for one, two in told.items()}, {one: two[1] for one, two in told.items()}
    pieces = plan_ranges(start, end, min_ranges=min_ranges, max_records=most)
    offsets = [(piece.partition, offset) for piece in pieces for offset in range(piece.start, piece.end)]
    assert offsets == [(one, offset) for one in sorted(told) for offset in range(start[one], end[one])]
    if most is not None:
        assert all(piece.end - piece.start <= most for piece in pieces)
    if min_ranges is not None:
        assert len(pieces) >= min(min_ranges, len(offsets))


@given(spans, st.integers(1, 200))
def test_a_limit_moves_every_partition_on(told: dict[TopicPartition, tuple[int, int]], most: int) -> None:
    start, end = {one: two[0] for one, two in told.items()}, {one: two[1] for one, two in told.items()}
    near = limit_ends(start, end, most)
    assert all(start[one] <= near[one] <= end[one] for one in told)
    assert all(near[one] > start[one] for one in told if end[one] > start[one])
    assert sum(near[one] - start[one] for one in told) <= most + len(told)


@given(spans, st.integers(1, 20), st.integers(1, 200))
def test_the_first_of_many_ranges(told: dict[TopicPartition, tuple[int, int]], length: int, most: int) -> None:
    start, end = {one: two[0] for one, two in told.items()}, {one: two[1] for one, two in told.items()}
    planned = plan_ranges(start, end, max_records=length)
    found = take_first(planned, most)
    assert sum(one.end - one.start for one in found) <= most
    at = dict(start)
    for one in found:
        assert one.start == at[one.partition]
        at[one.partition] = one.end
    if most >= length and planned:
        assert found


def test_one_range_a_partition() -> None:
    assert plan_ranges({P0: 3, P1: 5}, {P0: 9, P1: 5}) == [OffsetRange(partition=P0, start=3, end=9)]
