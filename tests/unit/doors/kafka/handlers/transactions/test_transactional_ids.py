"""Transactions over the wire, on one broker: every version of every request, and bad input."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

import pytest

from tailrace.broker.services import time_slices
from tailrace.client.connection import Connection
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd, TransactionToAdd
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.list_transactions import ListTransactionsRequest
from tests.unit.doors.kafka.served import Served, versions, with_broker
from tests.unit.doors.kafka.transacted import Transacted, group_offset


async def last_stable(broker: Served, topic: str, partition: int = 0) -> int:
    """The last stable offset."""
    one = PartitionAsked(partition=partition, current_leader_epoch=-1, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=(TopicAsked(name=topic, partitions=(one,)),))
    offset: int = (await broker.call(request, 6)).topics[0].partitions[0].offset
    return offset


@with_broker()
async def test_every_version_of_every_request(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.find()
    for version in versions(22):
        assert await one.init(version) == 0
    assert (one.producer_id >= 0, one.epoch) == (True, len(versions(22)) - 1)
    for add, offsets, commit, end in zip(range(4), range(4), (0, 1, 3, 4), (0, 1, 2, 4), strict=True):
        assert await one.add({"t": [0]}, add) == [0]
        assert await one.write("t", "v") == 0
        assert await one.add_offsets("g", offsets) == 0
        assert await one.commit_offset("g", "t", end + 1, commit) == 0
        assert await one.end(committed=True, version=end) == 0
        await one.until("CompleteCommit")
        assert await group_offset(broker.call, "g", "t", stable=True) == (0, end + 1)


@with_broker()
async def test_an_abort_leaves_nothing_behind(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.begin()
    assert await one.add({"t": [0]}) == [0]
    assert await one.write("t", "v", "w") == 0
    assert await last_stable(broker, "t") == 0
    assert await one.add_offsets("g") == 0
    assert await one.commit_offset("g", "t", 7) == 0
    assert await group_offset(broker.call, "g", "t", stable=True) == (Error.UNSTABLE_OFFSET_COMMIT, -1)
    assert await group_offset(broker.call, "g", "t", stable=False) == (0, -1)
    assert await one.end(committed=False) == 0
    await one.until("CompleteAbort")
    assert await group_offset(broker.call, "g", "t", stable=True) == (0, -1)
    assert await last_stable(broker, "t") == 3


@with_broker()
async def test_a_late_end_never_touches_the_next_transaction(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.begin()
    first = one.epoch
    assert await one.write("t", "a", version=12) == 0  # the partition is added by itself
    assert await one.end(committed=True, version=5) == 0
    assert one.epoch == first + 1
    await one.until("CompleteCommit")
    assert await one.end(committed=True, version=5, epoch=first) == 0  # asked again
    assert await one.end(committed=False, version=5, epoch=first) == Error.INVALID_TXN_STATE
    assert await one.write("t", "b", version=12) == 0
    for committed in (True, False):
        assert await one.end(committed=committed, version=5, epoch=first) == Error.PRODUCER_FENCED
    assert (await one.described()).transaction_state == "Ongoing"
    assert await last_stable(broker, "t") == 2
    assert await one.end(committed=False, version=5) == 0
    await one.until("CompleteAbort")
    assert await last_stable(broker, "t") == 4


@asynccontextmanager
async def on_another_connection(broker: Served) -> AsyncIterator[Transacted]:
    second = await Connection.connect(broker.node.ports.net, "127.0.0.1", broker.door.port)
    try:
        yield Transacted(second.call)
    finally:
        second.close()


@with_broker()
async def test_a_late_end_of_transactions_v1_is_known_by_its_connection(broker: Served) -> None:
    """The client has sent it, closed the connection, sent it again over the next, and begun the next transaction."""
    await broker.make_topic("t")
    given_up = Transacted(broker.call)
    async with on_another_connection(broker) as one:
        await given_up.begin()
        assert await given_up.add({"t": [0]}) == [0]
        one.producer_id, one.epoch = given_up.producer_id, given_up.epoch
        assert await one.end(committed=True) == 0
        await one.until("CompleteCommit")
        assert await given_up.end(committed=True) == 0  # as it was: nothing else has begun
        assert await one.add({"t": [0]}) == [0]
        for committed in (True, False):
            assert await given_up.end(committed=committed) == Error.INVALID_TXN_STATE
        assert await given_up.add({"t": [0]}) == [Error.INVALID_TXN_STATE]
        assert (await one.described()).transaction_state == "Ongoing"
        assert await one.end(committed=True) == 0
        await one.until("CompleteCommit")
        await given_up.begin()  # whoever takes the name may come by any
        assert await given_up.add({"t": [0]}) == [0]
        assert await given_up.end(committed=False) == 0


@with_broker()
async def test_a_name_may_be_taken_by_another_connection_than_what_follows(broker: Served) -> None:
    """aiokafka does so: it sends InitProducerId on another connection, which may be newer than the coordinator's."""
    await broker.make_topic("t")
    one = Transacted(broker.call)
    async with on_another_connection(broker) as apart:
        for _ in range(2):
            await apart.begin()
            one.producer_id, one.epoch = apart.producer_id, apart.epoch
            assert await one.add({"t": [0]}) == [0]
            assert await one.end(committed=True) == 0
            await one.until("CompleteCommit")


@with_broker()
async def test_what_a_producer_that_was_fenced_is_told(broker: Served) -> None:
    await broker.make_topic("t")
    old, new = Transacted(broker.call), Transacted(broker.call)
    await old.begin()
    assert await old.add({"t": [0]}) == [0]
    assert await old.write("t", "v") == 0
    assert await new.init() == Error.CONCURRENT_TRANSACTIONS
    await new.begin()
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert await last_stable(broker, "t") == 2
    for version, error in ((1, Error.INVALID_PRODUCER_EPOCH), (2, Error.PRODUCER_FENCED)):
        assert await old.add({"t": [0]}, version) == [error]
        assert await old.add_offsets("g", version) == error
        assert await old.end(committed=True, version=version) == error
    assert await old.init(3, goes_on=True) == Error.INVALID_PRODUCER_EPOCH
    assert await old.init(4, goes_on=True) == Error.PRODUCER_FENCED
    assert await old.write("t", "w") == Error.INVALID_PRODUCER_EPOCH
    for version in (3, 4, 5):
        assert await old.commit_offset("g", "t", 1, version) == Error.INVALID_PRODUCER_EPOCH


@with_broker()
async def test_a_transaction_is_aborted_when_its_time_is_up(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.begin(timeout_ms=50)
    assert await one.add({"t": [0]}) == [0]
    assert await one.write("t", "v") == 0
    began = asyncio.get_running_loop().time()
    await one.until("CompleteAbort")
    assert asyncio.get_running_loop().time() - began < 1.0
    assert await one.end(committed=True) == Error.PRODUCER_FENCED


@with_broker(transaction_max_timeout_ms=1000)
async def test_timeouts_have_bounds(broker: Served) -> None:
    one = Transacted(broker.call)
    await one.find()
    for timeout_ms in (0, -1, 1001):
        assert await one.init(timeout_ms=timeout_ms) == Error.INVALID_TRANSACTION_TIMEOUT
    assert await one.init(timeout_ms=1000) == 0


@with_broker()
async def test_partitions_that_are_not_there(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.begin()
    unknown, not_tried = Error.UNKNOWN_TOPIC_OR_PARTITION, Error.OPERATION_NOT_ATTEMPTED
    assert await one.add({"t": [0, 5], "u": [0]}) == [not_tried, unknown, unknown]
    assert (await one.described()).transaction_state == "Empty"
    assert await one.end(committed=True) == Error.INVALID_TXN_STATE
    assert await one.write("t", "v") == Error.TRANSACTION_ABORTABLE
    assert await one.write("t", "v", version=10) == Error.INVALID_TXN_STATE
    await broker.call(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
    for version, error in ((3, Error.INVALID_TXN_STATE), (4, Error.TRANSACTION_ABORTABLE)):
        assert await one.commit_offset("g", "t", 1, version) == error


@with_broker()
async def test_a_transaction_commits_offsets_of_groups_with_a_name(broker: Served) -> None:
    await broker.make_topic("t")
    one = Transacted(broker.call)
    await one.begin()
    for version in (0, 4, 5):
        assert await one.commit_offset("", "t", 1, version) == Error.INVALID_GROUP_ID
    assert (await one.described()).transaction_state == "Empty"


@with_broker()
async def test_names_that_are_none(broker: Served) -> None:
    nobody, unknown = Transacted(broker.call, ""), Transacted(broker.call, "never seen")
    await unknown.find()
    assert await nobody.init() == Error.INVALID_REQUEST
    assert await nobody.end(committed=True) == Error.INVALID_REQUEST
    assert await nobody.add({"t": [0]}) == [Error.INVALID_REQUEST]
    assert (await nobody.described()).error_code == Error.INVALID_REQUEST
    assert await unknown.end(committed=True) == Error.INVALID_PRODUCER_ID_MAPPING
    assert (await unknown.described()).error_code == Error.TRANSACTIONAL_ID_NOT_FOUND
    answer = await broker.call(FindCoordinatorRequest(key_type=1, coordinator_keys=("", "x")), 6)
    assert [one.error_code for one in answer.coordinators] == [Error.INVALID_REQUEST, 0]


@with_broker()
async def test_brokers_may_ask_for_several_and_only_whether(broker: Served) -> None:
    await broker.make_topic("t", 2)
    one = Transacted(broker.call)
    await one.begin()
    assert await one.add({"t": [0]}) == [0]

    def asked(name: str, *, verify_only: bool) -> TransactionToAdd:
        topics = (TopicToAdd(name="t", partitions=(0, 1)),)
        return TransactionToAdd(
            transactional_id=name,
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            verify_only=verify_only,
            topics=topics,
        )

    both = (asked("x", verify_only=True), asked("y", verify_only=True))
    for version, none in ((4, Error.INVALID_TXN_STATE), (5, Error.TRANSACTION_ABORTABLE)):
        answer = await broker.call(AddPartitionsToTxnRequest(transactions=both), version)
        codes = [[it.error_code for topic in one.topics for it in topic.partitions] for one in answer.transactions]
        assert codes == [[0, none], [Error.INVALID_PRODUCER_ID_MAPPING] * 2]
    await broker.call(AddPartitionsToTxnRequest(transactions=(asked("x", verify_only=False),)), 5)
    assert (await one.described()).topics[0].partitions == (0, 1)


@with_broker()
async def test_transactions_are_listed_by_what_one_wants_to_see(broker: Served) -> None:
    await broker.make_topic("t")
    first, second = Transacted(broker.call, "a-1"), Transacted(broker.call, "b-1")
    await first.begin()
    await second.begin()
    assert await second.add({"t": [0]}) == [0]

    async def listed(version: int = 2, **wanted: object) -> list[str]:
        request = ListTransactionsRequest(**{"state_filters": (), "producer_id_filters": (), **wanted})  # type: ignore[arg-type]
        answer = await broker.call(request, version)
        assert answer.error_code == 0
        return sorted(one.transactional_id for one in answer.transaction_states)

    assert await listed(0) == ["a-1", "b-1"]
    assert await listed(0, state_filters=("Ongoing",)) == ["b-1"]
    assert await listed(0, state_filters=("Ongoing", "Empty")) == ["a-1", "b-1"]
    assert await listed(0, producer_id_filters=(first.producer_id,)) == ["a-1"]
    assert await listed(1, duration_filter=0) == ["b-1"]
    assert await listed(1, duration_filter=60_000) == []
    unknown = await broker.call(ListTransactionsRequest(state_filters=("Asleep",), producer_id_filters=()), 2)
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (("Asleep",), ())
    described = await second.described()
    assert (described.transaction_state, described.topics[0].topic) == ("Ongoing", "t")
    assert described.transaction_timeout_ms == 60_000


@with_broker()
async def test_transactions_are_listed_by_a_pattern(broker: Served) -> None:
    pytest.importorskip("re2")
    for name in ("a-1", "a-2", "b-1"):
        await Transacted(broker.call, name).begin()

    async def listed(pattern: str | None) -> tuple[int, list[str]]:
        request = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern=pattern)
        answer = await broker.call(request, 2)
        return answer.error_code, sorted(one.transactional_id for one in answer.transaction_states)

    line = broker.door.slices
    with patch.object(time_slices, "SLICE_MAX_S", -1.0), patch.object(line, "wait", wraps=line.wait) as waited:
        assert await listed("a-.") == (0, ["a-1", "a-2"])
    assert waited.call_count == 3  # others have their turn while ids are tried
    assert await listed("1") == (0, [])  # as a whole
    for nothing in (None, ""):
        assert await listed(nothing) == (0, ["a-1", "a-2", "b-1"])
    assert await listed("a(") == (Error.INVALID_REGULAR_EXPRESSION, [])


@pytest.mark.parametrize("version", [4, 5])
def test_members_of_a_group_say_who_they_are(version: int, tmp_path: object) -> None:
    @with_broker()
    async def run(broker: Served) -> None:
        await broker.make_topic("t")
        one = Transacted(broker.call)
        await one.begin()
        if version < 5:
            assert await one.add_offsets("g") == 0
        else:
            await broker.call(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
        assert await one.commit_offset("g", "t", 1, version, generation_id=3, member_id="m") == Error.ILLEGAL_GENERATION
        assert await one.commit_offset("g", "t", 1, version) == 0
        assert await one.commit_offset("g", "nothing", 1, version) == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await one.end(committed=True, version=version) == 0
        await one.until("CompleteCommit")
        assert await group_offset(broker.call, "g", "t", stable=True) == (0, 1)

    run(tmp_path)  # type: ignore[arg-type]
