"""`tailrace.client.producer`: what becomes of records whose requests fail, one case at a time."""

import asyncio

import pytest

from tailrace.client.batching import Batch
from tailrace.client.producer import NotWritten, Producer, ProducerOptions
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionProduced, ProduceResponse
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient


@pytest.mark.parametrize(
    ("error", "uncertain"),
    [
        (Error.NOT_LEADER_OR_FOLLOWER, True),  # a leader that was deposed after the append says so, too
        (Error.KAFKA_STORAGE_ERROR, True),
        (Error.REQUEST_TIMED_OUT, True),
        (Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (Error.NOT_ENOUGH_REPLICAS, False),
    ],
)
def test_which_errors_leave_open_whether_a_batch_was_appended(error: Error, uncertain: bool) -> None:
    @simulated(count=1)
    async def check(brokers: Brokers) -> None:
        found = SimulatedClient(brokers.world, "b1")

        async def work() -> None:
            producer = Producer(found.cluster)
            partition = PartitionName("t", 0)
            await producer.send("t", b"x", partition=0)
            producer._turns.stop()
            (batch,) = producer._outbox.due(found.cluster.driver.now())
            assert isinstance(batch, Batch)
            answer = PartitionProduced(partition=0, error_code=error, base_offset=-1)
            producer._take_answer(batch, answer, ProduceResponse(topics=()))
            assert batch.uncertain is uncertain
            assert partition in producer._outbox._partitions

        await found.run(work())

    check()


@simulated(count=1)
async def test_what_is_not_bytes_is_refused_at_once(brokers: Brokers) -> None:
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(found.cluster) as producer:
            with pytest.raises(TypeError, match="are bytes"):
                await producer.send("t", "text", partition=0)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="are bytes"):
                await producer.send("t", b"", key=7, partition=0)  # type: ignore[arg-type]

    await found.run(work())


@simulated(count=1)
async def test_a_flush_does_not_wait_for_later_records(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(found.cluster) as producer:

            async def keep_sending() -> None:
                while True:
                    await producer.send("t", b"x", partition=0)
                    await asyncio.sleep(0.0001)

            sending = asyncio.ensure_future(keep_sending())
            await asyncio.sleep(0.01)
            async with asyncio.timeout(2):
                await producer.flush()
            sending.cancel()

    await found.run(work())


@simulated(count=1)
async def test_a_failed_transaction_takes_no_more_records(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), max_message_bytes=1000)
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(found.cluster, ProducerOptions(transactional_id="x")) as producer:
            await producer.begin()
            await producer.send("t", b"x" * 5000, partition=0)
            await producer.flush()
            for step in (producer.commit(), producer.send("t", b"x", partition=0)):
                with pytest.raises(NotWritten, match="can only be aborted"):
                    await step
            await producer.abort()

    await found.run(work())
