"""Plain reads of messages at an offset, without a group and without a fetch session."""

from typing import Any

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import Refused, error_of
from tailrace.client.visible_batches import VisibleBatches, select_visible
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch


async def read_visible(
    cluster: Cluster,
    place: PartitionName,
    offset: int,
    max_bytes: int,
    *,
    wait_s: float = 0.0,
    committed: bool = True,
    within_s: float | None = None,
) -> VisibleBatches | None:
    """What the leader has at this offset, one piece; None if it has nothing there within `wait_s`. Retried until there
    is an answer. `Refused` with OFFSET_OUT_OF_RANGE if the log begins later.

    Who waits needs connections of its own (`Cluster.with_own_connections`): a broker answers each in order.
    """
    what = f"read {place.topic}-{place.partition} at offset {offset}"

    async def ask() -> VisibleBatches | None:
        address = await cluster.leader(place)
        request = FetchRequest(
            max_wait_ms=int(1000 * wait_s),
            min_bytes=int(wait_s > 0),
            max_bytes=max_bytes,
            isolation_level=int(committed),
            topics=(
                TopicToFetch(
                    name=place.topic,
                    partitions=(
                        PartitionToFetch(
                            partition=place.partition,
                            current_leader_epoch=cluster.map.leader_epoch(place),
                            fetch_offset=offset,
                            partition_max_bytes=max_bytes,
                        ),
                    ),
                ),
            ),
        )
        try:
            response = await cluster.call(address, request, cluster.limits.request_s + wait_s)
        except Retry:
            cluster.map.forget_leader(place)
            raise
        answer = _answer(response, place, what)
        error = error_of(answer.error_code)
        if error is not Error.NONE:
            if not cluster.map.hint(place, answer.current_leader, response.node_endpoints):
                cluster.map.forget_leader(place)
            if error in (Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH):
                raise Retry(f"cannot {what}: {error.name}")
            raise Refused(error, what)
        if not answer.records:
            return None
        visible = select_visible(answer.records, (answer.aborted_transactions or ()) if committed else None)
        visible.limit = answer.last_stable_offset if committed else answer.high_watermark
        return visible

    return await cluster.retry(what, ask, within_s)


def _answer(response: Any, place: PartitionName, what: str) -> Any:
    error = error_of(response.error_code)
    if error is not Error.NONE:
        raise Refused(error, what)
    for topic in response.topics:
        for one in topic.partitions:
            if topic.name == place.topic and one.partition == place.partition:
                return one
    raise Retry(f"the response does not have {place.topic}-{place.partition}")
