"""`message_counts`: which offsets of a range have a message."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.message_counts import CountedRange, Gap
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.unfinished import Unfinished
from tailrace.model.ids import PartitionName
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient
from tests.unit.client.test_taking import SINGLE

PLACE = PartitionName("t", 0)


def gaps_of(missing: set[int], first: int, end: int) -> list[Gap]:
    return [(one, one) for one in sorted(missing) if first <= one < end]


@given(st.sets(st.integers(0, 30)), st.integers(0, 10), st.integers(10, 20), st.integers(20, 31), st.data())
def test_a_range_grows_at_both_ends(missing: set[int], low: int, middle: int, high: int, data: st.DataObject) -> None:
    counted = CountedRange(middle)
    counted.extend(high, gaps_of(missing, middle, high))
    counted.precede(low, gaps_of(missing, low, middle))
    first = data.draw(st.integers(low, high))
    end = data.draw(st.integers(first, high))
    assert counted.messages(first, end) == len([one for one in range(first, end) if one not in missing])


def test_long_gaps_are_cut_at_both_ends() -> None:
    counted = CountedRange(0)
    counted.extend(100, [(10, 19), (30, 89)])
    assert counted.messages(0, 100) == 30
    assert counted.messages(15, 40) == 10
    assert counted.messages(50, 60) == 0


@simulated()
async def test_counting_goes_on_after_a_leader_change(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    client = SimulatedClient(brokers.world, "b1,b2,b3")

    async def produce(count: int) -> None:
        async with Producer(client.cluster, ProducerOptions(limits=SINGLE)) as producer:
            for _ in range(count):
                await (await producer.send("t", b"x", partition=0))

    unfinished = Unfinished(client.cluster)

    async def count() -> int:
        return await unfinished.count("g", [PLACE], in_order=True)

    await client.run(produce(3))
    assert await client.run(count()) == 3
    brokers.kill(1)
    await client.run(produce(2))
    assert await client.run(count()) == 5
    await brokers.start(1)


@simulated(count=1)
async def test_nothing_is_remembered_of_a_compacted_topic(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), cleanup_policy="compact")
    client = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(client.cluster) as producer:
            for _ in range(3):
                await (await producer.send("t", b"x", key=b"k", partition=0))
        unfinished = Unfinished(client.cluster)
        assert await unfinished.count("g", [PLACE], in_order=True) == 3
        assert not unfinished.counts.remembered

    await client.run(work())
