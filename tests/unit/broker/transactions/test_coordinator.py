"""Transaction coordinators under failures: a decision is carried out, if need be by the next coordinator."""

from typing import Any
from unittest.mock import patch

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.broker.peers import Unreachable
from tailrace.broker.transactions.marker_delivery import BACKOFF_MAX_S
from tailrace.broker.transactions.partition_coordinator import FREE_WITHIN_S
from tailrace.client.faults import ConnectionLost
from tailrace.model.faults import ConcurrentTransactions
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.model.topics import TRANSACTIONS_TOPIC
from tailrace.transactions.transaction import Producer
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.doors.kafka.transacted import Transacted

FEW: dict[str, Any] = {"transaction_state_log_num_partitions": 3, "offsets_topic_num_partitions": 3}
ELSEWHERE = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_LEADER_OR_FOLLOWER)


class Producing:
    """A transactional producer that finds its coordinator, and the leader of `t`."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.transacted = Transacted(self._call)
        self.leader = 1  # of topic t

    async def coordinator(self) -> int:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=("x",))
        while True:
            (found,) = (await self.brokers.call(self.brokers.ids[0], request, 6)).coordinators
            if found.error_code == 0 and found.node_id in self.brokers.ids:
                broker: int = found.node_id
                return broker
            await self.brokers.elapse(0.1)

    async def _call(self, request: object, version: int) -> Any:
        name = type(request).__name__
        if name.startswith("FindCoordinator"):
            return await self.brokers.call(self.brokers.ids[0], request, version)
        if name.startswith("Produce"):
            return await self.brokers.call(self.leader, request, version)
        while True:
            try:
                answer = await self.brokers.call(await self.coordinator(), request, version)
            except (ConnectionLost, ConnectionError):
                await self.brokers.elapse(0.1)
                continue
            described = getattr(answer, "transaction_states", (answer,))[0]
            if getattr(described, "error_code", 0) not in (*ELSEWHERE, Error.COORDINATOR_LOAD_IN_PROGRESS):
                return answer
            await self.brokers.elapse(0.1)

    async def write(self, **settings: Any) -> None:
        """An open transaction, with one record in `t`."""
        await self.transacted.begin(**settings)
        assert await self.transacted.add({"t": [0]}) == [0]
        assert await self.transacted.write("t", "v") == 0

    async def end(self, *, committed: bool) -> int:
        return await self.transacted.end(committed=committed)

    async def ended(self, *states: str) -> None:
        while (await self.transacted.described()).transaction_state not in states:
            await self.brokers.elapse(0.05)

    def last_stable(self, broker: int) -> int:
        partition = self.brokers.replica(broker, "t")
        return partition.log.last_stable(partition.high_watermark)


async def in_transaction(brokers: Brokers, **settings: Any) -> Producing:
    """A producer with an open transaction on a new topic `t`, which broker 1 leads."""
    await brokers.make_topic("t", (1, 2, 3))
    one = Producing(brokers)
    await one.write(**settings)
    return one


@simulated(**FEW)
async def test_what_is_decided_is_carried_out_by_the_next_coordinator(brokers: Brokers) -> None:
    one = await in_transaction(brokers)
    old = await one.coordinator()
    assert await one.end(committed=True) == 0
    brokers.kill(old, power_loss=True)
    await one.ended("CompleteCommit")
    assert all(one.last_stable(broker) >= 2 for broker in brokers.ids if brokers.replica(broker, "t").leads)


@simulated(**FEW)
async def test_what_is_decided_is_carried_out_though_nobody_could_be_told(brokers: Brokers) -> None:
    one = await in_transaction(brokers)
    here = await one.coordinator()
    partition = brokers[here].hosted.find(TRANSACTIONS_TOPIC, partition_of("x", 3))
    with patch.object(partition, "hears_quorum", lambda: False):
        producer_id, epoch = one.transacted.producer_id, one.transacted.epoch
        request = EndTxnRequest(transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=True)
        assert (await brokers.call(here, request, 4)).error_code == Error.NOT_COORDINATOR
    await one.ended("CompleteCommit")


@simulated(**FEW)
async def test_a_coordinator_that_was_built_anew_sends_its_own_markers_and_none_from_before(brokers: Brokers) -> None:
    """A late marker of the earlier machine would end the producer's next transaction."""
    one = await in_transaction(brokers)
    node = brokers[await one.coordinator()]
    tried: list[int] = []
    sent: list[object] = []
    send = node.coordinators.markers.send

    async def noted(broker: BrokerId, markers: Any) -> Any:
        sent.extend(markers)
        return await send(broker, markers)

    async def lost(broker: BrokerId, markers: Any) -> Any:
        tried.append(broker)
        raise Unreachable("nobody is there")

    with patch.object(node.coordinators.markers, "send", lost):
        assert await one.end(committed=True) == 0
        while len(tried) < 8:  # then it waits for a second before it tries again
            await brokers.elapse(0.01)
    with patch.object(node.coordinators.markers, "send", noted):
        node.coordinators.transactions.local("x")._term.start_over()
        await one.ended("CompleteCommit")
        await brokers.elapse(2 * BACKOFF_MAX_S)
    assert len(sent) == 1


@simulated(**FEW)
async def test_clocks_that_were_set_keep_no_transaction_open(brokers: Brokers) -> None:
    one = await in_transaction(brokers, timeout_ms=8000)
    for broker in brokers.ids:
        brokers.machine(broker).clock.jump(-3_600_000)
    began = brokers.world.loop.time()
    brokers.kill(await one.coordinator(), power_loss=True)
    await one.ended("CompleteAbort")
    assert brokers.world.loop.time() - began < 12.0


@simulated(**FEW)
async def test_what_is_open_is_aborted_by_the_next_coordinator_when_its_time_is_up(brokers: Brokers) -> None:
    one = await in_transaction(brokers, timeout_ms=8000)
    began = brokers.world.loop.time()
    brokers.kill(await one.coordinator(), power_loss=True)
    await one.ended("CompleteAbort", "PrepareAbort")
    assert 7.0 <= brokers.world.loop.time() - began < 9.0  # by the wall clocks of two brokers
    await one.ended("CompleteAbort")
    assert await one.end(committed=True) == Error.PRODUCER_FENCED


@simulated(**FEW)
async def test_who_goes_on_at_once_need_not_come_again(brokers: Brokers) -> None:
    """The markers of the previous transaction are still being written: the request waits for them."""
    one = await in_transaction(brokers)
    here = await one.coordinator()
    direct = Transacted(lambda request, version: brokers.call(here, request, version))
    direct.producer_id, direct.epoch = one.transacted.producer_id, one.transacted.epoch
    for number in range(5):
        assert await direct.end(committed=number % 2 == 0) == 0
        assert await direct.add({"t": [0]}) == [0]


@simulated(**FEW)
async def test_markers_find_the_partition_wherever_it_is_led(brokers: Brokers) -> None:
    one = Producing(brokers)
    await one.transacted.find()
    here = await one.coordinator()
    one.leader = next(broker for broker in brokers.ids if broker != here)
    await brokers.make_topic("t", (one.leader, *(broker for broker in brokers.ids if broker != one.leader)))
    await one.write()
    brokers.kill(one.leader)
    assert await one.end(committed=True) == 0
    await one.ended("CompleteCommit")
    assert any(one.last_stable(broker) >= 2 for broker in brokers.ids)


@simulated(**FEW)
async def test_a_topic_that_is_deleted_needs_no_marker(brokers: Brokers) -> None:
    one = Producing(brokers)
    await one.transacted.find()
    here = await one.coordinator()
    one.leader = next(broker for broker in brokers.ids if broker not in (here, 1))
    await brokers.make_topic("t", (one.leader,))
    await one.write()
    brokers.kill(one.leader)
    assert await one.end(committed=True) == 0
    await brokers.elapse(5.0)
    assert (await one.transacted.described()).transaction_state == "PrepareCommit"
    assert await one.transacted.add({"t": [0]}) == [Error.CONCURRENT_TRANSACTIONS]  # not waited for without end
    await brokers.delete_topic("t")
    await one.ended("CompleteCommit")


@simulated(count=1, **FEW)
async def test_a_coordinator_that_could_not_write_has_decided_nothing(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    one = Producing(brokers)
    await one.write()
    brokers.machine(1).storage.fill(0)
    assert await brokers_answer(one) == Error.COORDINATOR_NOT_AVAILABLE
    brokers.machine(1).storage.make_room()
    await one.ended("Ongoing")
    assert await one.end(committed=False) == 0
    await one.ended("CompleteAbort")


async def brokers_answer(one: Producing) -> int:
    """The answer to EndTxn, without a retry."""
    transacted = Transacted(lambda request, version: one.brokers.call(1, request, version))
    transacted.producer_id, transacted.epoch = one.transacted.producer_id, one.transacted.epoch
    return await transacted.end(committed=True)


@simulated(count=1, transactional_id_expiration_ms=60_000, transaction_remove_expired_interval_ms=1000, **FEW)
async def test_unused_names_are_forgotten_by_the_clock(brokers: Brokers) -> None:
    one = Producing(brokers)
    await one.transacted.begin()
    await brokers.elapse(50)
    assert (await one.transacted.described()).error_code == 0
    await brokers.elapse(15)
    assert (await one.transacted.described()).error_code == Error.TRANSACTIONAL_ID_NOT_FOUND
    partition = brokers[1].hosted.find(TRANSACTIONS_TOPIC, partition_of("x", 3))
    assert partition.log.end == 2


@simulated(**FEW)
async def test_markers_reach_a_sole_replica_that_was_restarted(brokers: Brokers) -> None:
    """The leader of a partition with one replica is not reported: no other broker can lead it."""
    one = Producing(brokers)
    await one.transacted.find()
    here = await one.coordinator()
    one.leader = next(broker for broker in brokers.ids if broker not in (here, 1))
    await brokers.make_topic("t", (one.leader,))
    for _ in range(2):
        await one.write()
        brokers.kill(one.leader)
        assert await one.end(committed=True) == 0
        await brokers.start(one.leader)
        await one.ended("CompleteCommit")
        assert one.last_stable(one.leader) == brokers.replica(one.leader, "t").log.end


@simulated(count=1, **FEW)
async def test_a_partition_that_the_coordinator_has_not_heard_of_is_not_added(brokers: Brokers) -> None:
    """It would be mistaken for a deleted one, which needs no marker."""
    await brokers.make_topic("t", (1,))
    one = Producing(brokers)
    await one.transacted.begin()
    producer = Producer(one.transacted.producer_id, one.transacted.epoch)

    async def added(*places: PartitionName) -> object:
        verifier = brokers[1].services.writer.verifier
        faults = await brokers.machine(1).run(verifier.verify("x", producer, places, add=True))
        return {place: error_of(fault) for place, fault in faults.items()}

    assert await added(PartitionName("t", 0), PartitionName("t", 1)) == {
        ("t", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 1): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (await one.transacted.described()).transaction_state == "Empty"
    assert await added(PartitionName("t", 0)) == {}
    assert (await one.transacted.described()).transaction_state == "Ongoing"


@simulated(**FEW)
async def test_transactions_v2_need_nobody_to_add_partitions_and_survive_their_coordinator(brokers: Brokers) -> None:
    one = Producing(brokers)
    await one.transacted.begin()
    here = await one.coordinator()
    one.leader = next(broker for broker in brokers.ids if broker != here)
    await brokers.make_topic("t", (one.leader, *(broker for broker in brokers.ids if broker != one.leader)))
    for number in range(4):
        assert await written(one, f"{number}") == 0
        if number == 1:
            brokers.kill(here)
        assert await one.transacted.end(committed=number % 2 == 0, version=5) == 0
        await one.ended("CompleteCommit", "CompleteAbort")
    assert one.transacted.epoch == 4
    partition = brokers.replica(one.leader, "t")
    assert (partition.log.producers.transactions.open, partition.log.end) == ({}, 8)


async def written(one: Producing, value: str) -> int:
    """Produce as clients of transactions v2 do, with retries until the coordinator is found."""
    while (code := await one.transacted.write("t", value, version=12)) == Error.NOT_ENOUGH_REPLICAS:
        await one.brokers.elapse(0.1)
    return code


@simulated(**FEW)
async def test_who_is_sent_away_just_before_the_end_waits_for_nothing(brokers: Brokers) -> None:
    one = await in_transaction(brokers)
    here = await one.coordinator()
    coordinator, answers = (
        brokers[here].coordinators.transactions.local("x"),
        iter([ConcurrentTransactions("it was being ended"), None]),
    )

    async def work() -> None:
        if (fault := next(answers)) is not None:
            raise fault

    began = brokers.world.loop.time()
    await brokers.machine(here).run(coordinator.when_free("x", work))
    assert brokers.world.loop.time() - began < FREE_WITHIN_S / 2


@simulated(**FEW)
async def test_a_log_that_has_become_long_begins_anew_and_says_the_same(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    one = Producing(brokers)
    for _ in range(5):
        await one.write()
        assert await one.end(committed=True) == 0
        await one.ended("CompleteCommit")
    await one.write()
    here = await one.coordinator()
    transacting, number = brokers[here].coordinators.transactions, partition_of("x", 3)
    end = brokers[here].hosted.find(TRANSACTIONS_TOPIC, number).log.end
    await brokers.machine(here).run(transacting.shorten(transacting.local("x"), at_least=10))
    logs = [brokers[broker].hosted.find(TRANSACTIONS_TOPIC, number).log for broker in brokers.ids]
    await brokers.until(lambda: all(log.start == end for log in logs))
    assert logs[0].end == end + 1, "there is one name"
    brokers.kill(here, power_loss=True)
    await brokers.until(lambda: any(brokers.replica(broker, "t").leads for broker in brokers.ids))
    one.leader = next(broker for broker in brokers.ids if brokers.replica(broker, "t").leads)
    assert (await one.transacted.described()).transaction_state == "Ongoing"
    assert await one.end(committed=True) == 0
    await one.ended("CompleteCommit")
    assert one.last_stable(one.leader) == brokers.replica(one.leader, "t").log.end
