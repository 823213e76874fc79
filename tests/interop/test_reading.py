"""Messages come out: from any place, by time, while waiting; by assignment, without a coordinator."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import monotonic

import pytest

from tests.interop.client import Client, Code, Refused
from tests.interop.feature import feature
from tests.interop.messages import END, Compression, Message, Reading, Received, Sending

BASE_MS = 1_600_000_000_000


def fill(bench: Client, topic: str, count: int, compression: Compression = "none") -> None:
    """Values "0", "1", …, one second apart."""
    messages = [Message(value=b"%d" % n, timestamp_ms=BASE_MS + 1000 * n) for n in range(count)]
    bench.produce(topic, messages, Sending(compression=compression))


def numbers(received: list[Received]) -> list[int]:
    assert [one.value for one in received] == [b"%d" % one.offset for one in received]
    return [one.offset for one in received]


@feature("from the beginning", "reader")
def test_beginning(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 20)
    assert numbers(client.consume(topic, 20)) == list(range(20))


@pytest.mark.parametrize("compression", ["none", "snappy"])
@feature("from an offset in the middle of a batch, compression {compression}", "reader")
def test_any_offset(client: Client, compression: Compression, topic: str, bench: Client) -> None:
    fill(bench, topic, 20, compression)
    assert numbers(client.consume(topic, 7, start=13)) == list(range(13, 20))


@feature("from the end: only what comes after", "reader")
def test_end(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 3)
    with client.reader(topic, Reading(start=END)) as reader, ThreadPoolExecutor() as pool:
        first: Future[list[Received]] = pool.submit(reader.take, 1)
        sent = 3
        while not wait([first], timeout=0.05).done:  # the reader says nothing of when it has found the end
            bench.produce(topic, [Message(value=b"%d" % sent)], Sending(acks=1))
            sent += 1
        assert 3 <= numbers(first.result())[0] < sent


@feature("the first and the next offset of a partition", "watermarks")
def test_watermarks(client: Client, topic: str, bench: Client) -> None:
    assert client.watermarks(topic) == (0, 0)
    fill(bench, topic, 5)
    assert client.watermarks(topic) == (0, 5)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@feature("the offset at a time, exact to the record, compression {compression}", "offset_at")
def test_by_time(client: Client, compression: Compression, topic: str, bench: Client) -> None:
    fill(bench, topic, 10, compression)
    fill(bench, topic, 10, compression)
    asked = {0: 0, BASE_MS: 0, BASE_MS + 1: 1, BASE_MS + 3000: 3, BASE_MS + 8500: 9}
    assert {stamp: client.offset_at(topic, stamp) for stamp in asked} == asked


@feature("no offset after the last time", "offset_at")
def test_after_the_last_time(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 3)
    assert client.offset_at(topic, BASE_MS + 60_000) == -1


@feature("read from the offset at a time", "offset_at", "reader")
def test_read_by_time(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 10)
    first = client.offset_at(topic, BASE_MS + 6500)
    assert numbers(client.consume(topic, 3, start=first)) == [7, 8, 9]


@pytest.mark.parametrize("spec", ["earliest", "latest", "max_timestamp"])
@feature("list offsets as an admin: {spec}", "list_offset")
def test_list_offset(client: Client, spec: str, topic: str, bench: Client) -> None:
    stamps = [BASE_MS, BASE_MS + 9000, BASE_MS + 1000]
    bench.produce(topic, [Message(value=b"v", timestamp_ms=stamp) for stamp in stamps])
    expected = {"earliest": 0, "latest": 3, "max_timestamp": 1}
    assert client.list_offset(topic, spec) == expected[spec]  # type: ignore[arg-type]


@feature("a waiting reader wakes when a message arrives", "reader")
def test_long_poll(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 1)
    with client.reader(topic, Reading(wait_ms=10_000)) as reader:
        assert numbers(reader.take(1)) == [0]
        begun = monotonic()
        for n in range(1, 6):
            bench.produce(topic, [Message(value=b"%d" % n)], Sending(acks=1))
            assert numbers(reader.take(1)) == [n]
        assert monotonic() - begun < 5  # one fetch that is not woken takes ten seconds


@feature("fetches of one byte still bring whole batches", "reader")
def test_tiny_fetches(client: Client, topic: str, bench: Client) -> None:
    for n in range(4):
        bench.produce(topic, [Message(value=b"%d" % n)])
    with client.reader(topic, Reading(fetch_bytes=1)) as reader:
        assert numbers(reader.take(4)) == [0, 1, 2, 3]


@feature("read committed: the same without transactions", "reader")
def test_read_committed(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.reader(topic, Reading(committed_only=True)) as reader:
        assert numbers(reader.take(10)) == list(range(10))


@feature("an offset out of range: start over where told to", "reader")
def test_reset(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with client.reader(topic, Reading(start=1000, reset="earliest")) as reader:
        assert numbers(reader.take(5)) == list(range(5))


@feature("an offset out of range: an error when told to", "reader", "error when lost")
def test_out_of_range(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with client.reader(topic, Reading(start=1000)) as reader, pytest.raises(Refused) as refused:
        reader.take(1)
    assert refused.value.code == Code.OFFSET_OUT_OF_RANGE


@feature("delete records; the first offset moves, the rest is read", "delete_records", "watermarks")
def test_delete_records(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 10)
    assert client.delete_records(topic, 4) == 4
    assert client.watermarks(topic) == (4, 10)
    assert numbers(client.consume(topic, 6, start=4)) == list(range(4, 10))


@feature("delete all records there are", "delete_records", "watermarks")
def test_delete_all_records(client: Client, topic: str, bench: Client) -> None:
    fill(bench, topic, 10)
    assert client.delete_records(topic, END) == 10
    assert client.watermarks(topic) == (10, 10)
