"""Topics with `compression.type`: batches in another codec are compressed anew before they are appended."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tailrace.client.connection import Connection
from tailrace.model.limits import BATCH_HEADER_BYTES, RECOMPRESSED_MAX_BYTES, RECOMPRESSIONS_AT_ONCE_MAX
from tailrace.records.build import build_batch, seal_batch
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.header import BatchHeader, check_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord, Record
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.handlers.configs.test_configs import ASSIGN, BROKER_KIND, TOPIC_KIND, change
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, with_broker
from tests.unit.doors.kafka.transacting import now_ms, oracle_for
from tests.unit.doors.kafka.transacting import produce as in_transaction

T = TypeVar("T")


class Gate:
    """The threads of recompressions: each call runs when `open` is set."""

    def __init__(self, served: Served) -> None:
        recompression = served.node.services.writer._recompression
        self._offload, recompression._offload = recompression._offload, self  # type: ignore[assignment]
        self.open = asyncio.Event()
        self.begun = self.running = self.most = 0

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        self.begun += 1
        return asyncio.ensure_future(self._run(call))

    async def _run(self, call: Callable[[], T]) -> T:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.wait()
            return await self._offload.thread(call)
        finally:
            self.running -= 1


def made(
    *values: bytes, codec: Compression = "none", key: bytes | None = b"k", producer: int = -1, sequence: int = -1
) -> bytes:
    records = [NewRecord(value=value, key=key, headers=(("h", b"1"),), timestamp=now_ms()) for value in values]
    epoch = -1 if producer < 0 else 0
    return bytes(
        build_batch(records, compression=codec, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    )


def request(*sent: bytes, acks: int = -1) -> ProduceRequest:
    partitions = tuple(PartitionToProduce(partition=0, records=one) for one in sent)
    return ProduceRequest(acks=acks, timeout_ms=5000, topics=(TopicToProduce(name="t", partitions=partitions),))


async def answers(waiting: Sequence["asyncio.Future[Any]"]) -> list[tuple[Error, int]]:
    """The error and the offset of each batch."""
    async with asyncio.timeout(ANSWER_MAX_S):
        said = [one for answer in await asyncio.gather(*waiting) for one in answer.topics[0].partitions]
    return [(Error(one.error_code), one.base_offset) for one in said]


async def send(served: Served, *sent: bytes) -> list[tuple[Error, int]]:
    return await answers([served.client.send(request(*sent), 9)])


def stored(served: Served) -> list[tuple[BatchHeader, list[Record]]]:
    """The batches in the log, each opened: checksum, offsets and record count are right."""
    log = served.node.hosted.find("t", 0).log
    found: list[tuple[BatchHeader, list[Record]]] = []
    while (offset := found[-1][0].last_offset + 1 if found else 0) < log.end:
        read = log.read(offset, 1 << 20, log.end)
        assert read is not None
        found += [(header, open_batch(batch)) for batch, header in batches(read.data)]
    return [one for one in found if not one[0].is_control]


def codecs(served: Served) -> list[Compression]:
    return [COMPRESSIONS[header.compression] for header, _ in stored(served)]


async def connected(served: Served) -> Connection:
    return await Connection.connect(served.node.ports.net, "127.0.0.1", served.door.port)


@with_broker()
async def test_every_codec_is_stored_in_every_other(served: Served) -> None:
    await served.make_topic("t")
    sequence = 0
    for setting in ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"):
        assert (await change(served, TOPIC_KIND, "t", ("compression.type", ASSIGN, setting))).error_code == 0
        for codec in COMPRESSIONS:  # all but the first request match the template of the one before
            sent = made(b"a" * 500, b"b", codec=codec, producer=7, sequence=sequence)
            end = served.node.hosted.find("t", 0).log.end
            assert await send(served, sent) == [(Error.NONE, end)]
            header, records = stored(served)[-1]
            wanted = {"uncompressed": "none", "producer": codec}.get(setting, setting)
            assert COMPRESSIONS[header.compression] == wanted
            before = check_batch(memoryview(bytearray(sent)))
            assert header[6:] == before[6:]  # from the last offset delta on
            assert [one[1:] for one in records] == [one[1:] for one in open_batch(sent)]
            assert [one.offset for one in records] == [end, end + 1]
            sequence += 2


@with_broker()
async def test_a_batch_in_the_topics_codec_is_appended_at_once(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd", compression_zstd_level="19")
    gate = Gate(served)
    sent = made(b"v" * 100, codec="zstd")
    for _ in range(2):
        assert (await send(served, sent))[0][0] is Error.NONE
    assert gate.begun == 0
    assert {header.crc for header, _ in stored(served)} == {check_batch(memoryview(sent)).crc}


@with_broker()
async def test_each_producers_batches_stay_in_order(served: Served) -> None:
    """Only some of them have to be compressed anew; the others do not overtake them."""
    await served.make_topic("t", compression_type="lz4")
    gate = Gate(served)
    clients = [await connected(served) for _ in range(3)]
    waiting = []
    for sequence in range(10):
        for producer, client in enumerate(clients):
            codec = COMPRESSIONS[(3 + sequence * (producer + 1)) % 5]
            value = b"%d" % sequence
            waiting.append(
                client.send(request(made(value, codec=codec, producer=producer, sequence=sequence)), 9 + producer)
            )
    await until(lambda: gate.running == 3)
    gate.open.set()
    assert {error for error, _ in await answers(waiting)} == {Error.NONE}
    for producer in range(3):
        values = [records[0].value for header, records in stored(served) if header.producer_id == producer]
        assert values == [b"%d" % sequence for sequence in range(10)]
    assert set(codecs(served)) == {"lz4"}
    for client in clients:
        client.close()


@with_broker()
async def test_batches_of_one_request_have_an_outcome_each(served: Served) -> None:
    await served.make_topic("t", compression_type="gzip")
    good = made(b"v" * 1000, codec="zstd")
    torn = bytes(seal_batch(good[BATCH_HEADER_BYTES:-9], count=1, base_timestamp=0, max_timestamp=0, flags=4))
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    in_gzip = made(b"w", codec="gzip")
    said = await send(served, good, torn, in_gzip, damaged, good)
    assert said == [
        (Error.NONE, 0),
        (Error.CORRUPT_MESSAGE, -1),
        (Error.NONE, 1),
        (Error.CORRUPT_MESSAGE, -1),
        (Error.NONE, 2),
    ]
    assert codecs(served) == ["gzip"] * 3


@with_broker()
async def test_a_duplicate_is_not_compressed_again(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd")
    gate = Gate(served)
    sent = made(b"v", producer=7, sequence=0)
    other = await connected(served)
    waiting = [served.client.send(request(sent), 9), other.send(request(sent), 9)]
    await until(lambda: gate.running == 2)  # it is sent again while the first one is under way
    gate.open.set()
    assert await answers(waiting) == [(Error.NONE, 0)] * 2
    assert await send(served, sent) == [(Error.NONE, 0)]
    assert (gate.begun, served.node.hosted.find("t", 0).log.end) == (2, 1)
    other.close()


@with_broker()
async def test_what_is_too_large_afterwards_is_refused(served: Served) -> None:
    await served.make_topic("t", compression_type="uncompressed", max_message_bytes="20000")
    assert await send(served, made(bytes(20_000), codec="zstd")) == [(Error.MESSAGE_TOO_LARGE, -1)]
    await change(served, TOPIC_KIND, "t", ("compression.type", ASSIGN, "snappy"))
    digits = b"".join(b"%d" % (number**9 % 1_000_000_007) for number in range(3_500))
    sent = made(digits, codec="zstd")
    assert len(sent) < 20_000 < len(made(digits, codec="snappy"))
    assert await send(served, sent) == [(Error.MESSAGE_TOO_LARGE, -1)]
    await change(
        served,
        TOPIC_KIND,
        "t",
        ("compression.type", ASSIGN, "gzip"),
        ("max.message.bytes", ASSIGN, "1000000"),
    )
    bomb = made(bytes(RECOMPRESSED_MAX_BYTES), codec="zstd")  # far smaller than that in either codec
    assert await send(served, bomb, made(b"v")) == [(Error.MESSAGE_TOO_LARGE, -1), (Error.NONE, 0)]


@with_broker()
async def test_what_is_refused_anyway_is_not_compressed(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd", max_message_bytes="1000")
    gate = Gate(served)
    assert await send(served, made(bytes(1000))) == [(Error.MESSAGE_TOO_LARGE, -1)]
    out_of_order = made(b"v", producer=7, sequence=5)
    gate.open.set()
    assert await send(served, made(b"v", producer=7, sequence=0)) == [(Error.NONE, 0)]
    assert await send(served, out_of_order) == [(Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert gate.begun == 1


@with_broker()
async def test_only_a_few_are_compressed_at_once(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd")
    gate = Gate(served)
    clients = [await connected(served) for _ in range(3 * RECOMPRESSIONS_AT_ONCE_MAX)]
    waiting = [client.send(request(made(b"v")), 9) for client in clients]
    await until(lambda: gate.running == RECOMPRESSIONS_AT_ONCE_MAX)
    gate.open.set()
    assert {error for error, _ in await answers(waiting)} == {Error.NONE}
    assert (gate.begun, gate.most) == (len(clients), RECOMPRESSIONS_AT_ONCE_MAX)
    for client in clients:
        client.close()


@with_broker()
async def test_other_settings_meanwhile_are_followed(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd")
    gate = Gate(served)
    waiting = served.client.send(request(made(b"v", codec="snappy")), 9)
    await until(lambda: gate.running == 1)
    other = await connected(served)
    changing = Served(served.node, served.door, other)
    await change(changing, TOPIC_KIND, "t", ("compression.type", ASSIGN, "lz4"))
    gate.open.set()
    assert await answers([waiting]) == [(Error.NONE, 0)]
    assert codecs(served) == ["lz4"]
    other.close()


@with_broker()
async def test_records_of_a_compacted_topic_are_checked_as_well(served: Served) -> None:
    await served.make_topic("t", cleanup_policy="compact", compression_type="gzip")
    for codec in ("none", "gzip", "zstd"):
        bad = made(b"a", b"b", codec=codec, key=None)
        answer = await served.call(request(bad), 9)
        (one,) = answer.topics[0].partitions
        assert one.error_code == Error.INVALID_RECORD
        assert [rejected.batch_index for rejected in one.record_errors] == [0, 1]
        assert (await send(served, made(b"a", codec=codec)))[0][0] is Error.NONE
    assert codecs(served) == ["gzip"] * 3


@with_broker()
async def test_append_time_is_that_of_the_append(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd", message_timestamp_type="LogAppendTime")
    answer = await served.call(request(made(b"v")), 9)
    ((header, records),) = stored(served)
    assert header.attributes & 0xF == 0x8 | COMPRESSIONS.index("zstd")
    assert records[0].timestamp == answer.topics[0].partitions[0].log_append_time_ms == header.max_timestamp


@with_broker(compression_type="lz4", compression_lz4_level=12)
async def test_topics_without_the_setting_have_the_brokers(served: Served) -> None:
    await served.make_topic("t")
    await send(served, made(b"v"))
    await change(served, BROKER_KIND, "", ("compression.type", ASSIGN, "gzip"))
    await send(served, made(b"v"))
    await change(served, TOPIC_KIND, "t", ("compression.type", ASSIGN, "producer"))
    await send(served, made(b"v"))
    assert codecs(served) == ["lz4", "gzip", "none"]


@with_broker()
async def test_no_answer_is_wanted(served: Served) -> None:
    await served.make_topic("t", compression_type="zstd")
    for sequence in range(3):
        served.client.send(request(made(b"v", producer=7, sequence=sequence), acks=0), 9).cancel()
    await until(lambda: served.node.hosted.find("t", 0).log.end == 3)
    assert codecs(served) == ["zstd"] * 3


@with_broker()
async def test_a_marker_meanwhile_refuses_a_batch_of_the_transaction(served: Served) -> None:
    """It would begin a transaction that nobody ends."""
    await served.make_topic("t", compression_type="zstd")
    oracle_for(served)
    gate, partition = Gate(served), served.node.hosted.find("t", 0)
    gate.open.set()
    assert await answers([served.client.send(in_transaction("a"), 11)]) == [(Error.NONE, 0)]
    gate.open.clear()
    waiting = served.client.send(in_transaction("b", sequence=1), 11)
    await until(lambda: gate.running == 1)
    await partition.write_marker(7, 0, 0, False)
    gate.open.set()
    assert await answers([waiting]) == [(Error.NOT_ENOUGH_REPLICAS, -1)]
    assert (partition.log.end, partition.last_stable) == (2, 2)
    assert not partition.guards._taken
    assert await answers([served.client.send(in_transaction("b", sequence=1), 11)]) == [(Error.NONE, 2)]
    assert codecs(served) == ["zstd"] * 2


@with_cluster()
async def test_another_leader_meanwhile_refuses_the_batch_and_those_behind_it(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    await change(cluster[1], TOPIC_KIND, "t", ("compression.type", ASSIGN, "zstd"))
    await until(lambda: all(cluster.replica(one, "t").log.settings.compression_type == "zstd" for one in cluster.ids))
    gate = Gate(cluster[1])
    sent = [made(b"%d" % sequence, producer=7, sequence=sequence) for sequence in range(3)]
    waiting = [cluster[1].client.send(request(one), 9) for one in sent]
    await until(lambda: gate.running == 1)
    await cluster.move("t", 2)
    gate.open.set()
    assert {error for error, _ in await answers(waiting)} == {Error.NOT_LEADER_OR_FOLLOWER}
    said = await answers([cluster[2].client.send(request(one), 9) for one in sent])
    assert [error for error, _ in said] == [Error.NONE] * 3
    await cluster.caught_up("t", said[-1][1] + 1)
    for broker in cluster.ids:
        assert [(records[0].value, header.compression) for header, records in stored(cluster[broker])] == [
            (b"%d" % sequence, COMPRESSIONS.index("zstd")) for sequence in range(3)
        ]


@with_cluster()
async def test_a_leader_that_leads_again_appends_it_once(cluster: Clustered) -> None:
    """The client has sent it to the other leader in the meantime, which has appended it."""
    await cluster.make_topic("t")
    await change(cluster[1], TOPIC_KIND, "t", ("compression.type", ASSIGN, "zstd"))
    await until(lambda: all(cluster.replica(one, "t").log.settings.compression_type == "zstd" for one in cluster.ids))
    gate = Gate(cluster[1])
    sent = made(b"v", producer=7, sequence=0)
    waiting = cluster[1].client.send(request(sent), 9)
    await until(lambda: gate.running == 1)
    await cluster.move("t", 2)
    (first,) = await answers([cluster[2].client.send(request(sent), 9)])
    await cluster.move("t", 1)
    gate.open.set()
    ((error, offset),) = await answers([waiting])
    assert error is Error.NOT_LEADER_OR_FOLLOWER or (error, offset) == first
    assert [records[0].value for _, records in stored(cluster[1])] == [b"v"]
