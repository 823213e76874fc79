"""AddOffsetsToTxn: a transaction will commit offsets of a group; the partition that keeps them takes part in it."""

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.add_partitions_to_txn import CLIENT_VERSION
from tailrace.doors.kafka.handlers.transactions.transactional_ids import coordinator_of, error_for
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.transactions.transaction import Producer
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, call: Call) -> AddOffsetsToTxnResponse:
    name, who = request.transactional_id, Producer(request.producer_id, request.producer_epoch)
    try:
        coordinator = coordinator_of(call, name)
        place, link = await _place_of(call, request.group_id), call.connection.number
        await coordinator.when_free(
            name,
            lambda: coordinator.act(lambda machine, turn: machine.add(name, who, [place], CLIENT_VERSION, turn, link)),
        )
    except Fault as fault:
        return AddOffsetsToTxnResponse(error_code=error_for(fault, call, fenced_since=2, abortable_since=4))
    return AddOffsetsToTxnResponse()


async def _place_of(call: Call, group_id: str) -> PartitionName:
    """Where a group's offsets are kept; the topic is made where it is the first."""
    topic = await call.node.group_coordinator.kept_in()
    return PartitionName(OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions)))
