"""Malformed frames and unknown requests: an error response of the protocol, or a closed connection and a log line."""

import asyncio
import re
import struct

from tailrace.model.ids import Id
from tailrace.model.limits import SMALL_REQUEST_MAX_BYTES
from tailrace.wire.errors import Error
from tailrace.wire.headers import request_header
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.messages.peers import RAFT_MESSAGES_KEY
from tailrace.wire.messages.peers.forward import Forward
from tailrace.wire.messages.peers.hello import PeerHello
from tests.unit.doors.kafka.hostile import Raw, framed, heard, until, with_length
from tests.unit.doors.kafka.served import Served, with_broker

everything = framed(MetadataRequest(topics=None), 9)


async def refused(served: Served, data: bytes) -> str:
    """Send bytes for which the broker closes the connection; returns the line it logs. Other connections stay open."""
    with heard() as lines:
        client = await Raw.connect(served.node.kafka_port)
        client.send(data)
        assert await client.closed()
        client.close()
    assert (await served.call(MetadataRequest(topics=()), 9)).brokers
    (line,) = lines
    return line


@with_broker(socket_request_max_bytes=1_000_000)
async def test_a_length_that_cannot_be_closes_the_connection(served: Served) -> None:
    for length in (0, -1, -(2**31), 1_000_001, 2**31 - 1):
        line = await refused(served, struct.pack(">i", length) + everything)
        assert f"a frame of {length} bytes; allowed are 1 to 1000000" in line


@with_broker()
async def test_another_protocol_at_this_port_is_hung_up_on(served: Served) -> None:
    assert "a frame of 1195725856 bytes" in await refused(served, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")


@with_broker()
async def test_a_frame_longer_than_what_was_sent_waits_for_the_rest_and_holds_up_nobody(served: Served) -> None:
    client = await Raw.connect(served.node.kafka_port)
    client.send(struct.pack(">i", 90_000_000) + bytes(100))
    assert (await served.call(MetadataRequest(topics=()), 9)).brokers
    client.writer.write_eof()
    assert await client.closed()


@with_broker()
async def test_a_frame_shorter_than_its_request_is_refused_by_what_it_lacks(served: Served) -> None:
    body = everything[4:]
    for size in range(1, len(body)):
        line = await refused(served, with_length(body[:size]))
        assert "is truncated" in line or " are left" in line or "cannot be null" in line, line


@with_broker()
async def test_an_array_count_above_the_bytes_left_is_refused_before_anything_is_made(served: Served) -> None:
    header = request_header(3, 1, 1, "hostile", False)
    for count in (3, 1_000_000, 2**31 - 1):
        line = await refused(served, with_length(header + struct.pack(">i", count) + b"\0\0"))
        assert f"declares {count} elements" in line


@with_broker()
async def test_a_varint_that_never_ends_is_refused(served: Served) -> None:
    header = request_header(3, 9, 1, "hostile", True)
    assert "a varint" in await refused(served, with_length(header + b"\xff" * 20))


@with_broker()
async def test_bytes_behind_a_request_are_passed_over_and_the_next_one_is_found(served: Served) -> None:
    client = await Raw.connect(served.node.kafka_port)
    client.send(with_length(everything[4:] + b"abc") + everything)
    for _ in range(2):
        assert (await client.answer_to(3, 9)).brokers
    client.close()


@with_broker()
async def test_an_unknown_api_is_hung_up_on_with_one_line(served: Served) -> None:
    assert "unknown API key 999" in await refused(served, with_length(request_header(999, 0, 1, "hostile", False)))


@with_broker()
async def test_what_brokers_say_to_each_other_is_hung_up_on(served: Served) -> None:
    hello = PeerHello(
        cluster_id=served.node.meta.cluster_id,
        broker_id=2,
        directory_id=Id(bytes(range(16))),
        to=1,
        lane=0,
        release="1",
    )
    for data in (
        framed(hello, 0),
        with_length(request_header(RAFT_MESSAGES_KEY, 0, 1, "hostile", True)),
        framed(Forward(api_key=19, api_version=7, body=b""), 0),
    ):
        assert re.search(
            r"API key 10\d\d is for requests between brokers, on the peer port only", await refused(served, data)
        )
    for vote in (52, 53, 54):  # Kafka's own for Raft
        line = await refused(served, with_length(request_header(vote, 0, 1, "hostile", True)))
        assert f"unknown API key {vote}" in line


@with_broker()
async def test_an_unknown_version_is_hung_up_on_with_one_line(served: Served) -> None:
    line = await refused(served, with_length(request_header(3, 99, 1, "hostile", True)))
    assert "Metadata version 99 is not supported, only 0-13" in line


@with_broker()
async def test_api_versions_newer_than_ours_is_told_which_we_have(served: Served) -> None:
    """KIP-511: a response in version 0 with the supported versions of ApiVersions, so that any client can continue."""
    client = await Raw.connect(served.node.kafka_port)
    for version in (5, 99, 32767, -1):
        client.send(with_length(request_header(18, version, 7, "hostile", version > 0)))
        answer = await client.answer_to(18, 0)
        assert answer.error_code == Error.UNSUPPORTED_VERSION
        (own,) = answer.api_keys
        assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)
        client.send(framed(ApiVersionsRequest(), own.max_version))
        assert (await client.answer_to(18, 4)).error_code == 0  # on the same connection
    client.close()


@with_broker()
async def test_unknown_tagged_fields_are_skipped_wherever_they_stand(served: Served) -> None:
    header = request_header(3, 9, 1, "hostile", False) + b"\x01\x63\x04tags"  # one, number 99
    tags = b"\x02\x32\x02no\x63\x03one"
    client = await Raw.connect(served.node.kafka_port)
    client.send(with_length(header + b"\x02\x05name" + tags + b"\0\0\0" + tags))
    answer = await client.answer_to(3, 9)
    assert answer.topics[0].name == "name"
    client.close()


@with_broker()
async def test_a_tagged_field_that_lies_about_its_size_is_refused(served: Served) -> None:
    header = request_header(18, 3, 1, "hostile", False)
    assert "a tagged field declares 120 bytes, 2 are left" in await refused(
        served, with_length(header + b"\x01\x63\x78ab")
    )
    assert "declares 268435455 tagged fields" in await refused(
        served, with_length(header + b"\xff\xff\xff\x7f" + bytes(100))
    )


@with_broker()
async def test_only_requests_with_records_may_be_large(served: Served) -> None:
    keys = tuple("k" * 30_000 for _ in range(SMALL_REQUEST_MAX_BYTES // 30_000 + 1))
    line = await refused(served, framed(FindCoordinatorRequest(coordinator_keys=keys), 4))
    assert f"at most {SMALL_REQUEST_MAX_BYTES} bytes are allowed" in line


@with_broker()
async def test_text_of_a_client_cannot_forge_a_log_line(served: Served) -> None:
    name = "x\n2026-01-01 critical the broker is on fire " + "!" * 5000
    body = struct.pack(">hhii", -1, 0, 1000, 1) + struct.pack(">h", len(name)) + name.encode()
    body += struct.pack(">iii", 1, 0, 0)
    line = await refused(served, with_length(request_header(0, 3, 1, "hostile", False) + body))
    assert "\n" not in line
    assert len(line) < 1000


@with_broker()
async def test_a_request_that_comes_byte_by_byte_is_answered(served: Served) -> None:
    client = await Raw.connect(served.node.kafka_port)
    for byte in everything:
        client.send(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.answer_to(3, 9)).brokers
    client.close()


@with_broker()
async def test_a_client_that_has_no_more_to_say_still_gets_what_is_ready(served: Served) -> None:
    client = await Raw.connect(served.node.kafka_port)
    client.send(everything)
    await client.answer()
    client.writer.write_eof()
    assert await client.closed()


@with_broker(connections_max_idle_ms=1000)
async def test_a_half_open_connection_is_closed_when_it_was_silent_for_long(served: Served) -> None:
    client = await Raw.connect(served.node.kafka_port)
    client.send(everything[:10])
    with heard() as lines:
        assert await client.closed()
    assert any("it was idle for 1 s" in line for line in lines)
    client.close()


@with_broker(connections_max_idle_ms=1000)
async def test_a_client_that_waits_for_its_answer_is_not_silent(served: Served) -> None:
    await served.make_topic("t")
    wanted = TopicToFetch(name="t", partitions=(PartitionToFetch(partition=0, fetch_offset=0, partition_max_bytes=1),))
    client = await Raw.connect(served.node.kafka_port)
    client.send(framed(FetchRequest(max_wait_ms=1700, min_bytes=1, max_bytes=1, topics=(wanted,)), 12))
    assert (await client.answer_to(1, 12)).topics[0].partitions[0].error_code == 0
    client.close()


@with_broker(max_connections=3)
async def test_above_max_connections_newcomers_are_refused_and_the_others_stay(served: Served) -> None:
    kept = [await Raw.connect(served.node.kafka_port) for _ in range(2)]
    for client in kept:
        client.send(everything)
        await client.answer()
    assert "connections are open already (max.connections)" in await refused(served, everything)
    kept.pop().close()
    await until(lambda: len(served.door) == 2)
    kept.append(await Raw.connect(served.node.kafka_port))
    kept[-1].send(everything)
    assert await kept[-1].answer()
    for client in kept:
        client.close()
