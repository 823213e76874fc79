"""Brokers that misbehave, as a seed decides: late, silent, lying, speaking nonsense, or of another cluster.

Each answers some requests properly, so that a client gets somewhere before it is let down.
"""

import asyncio
import random
from typing import Any, Final

from tailrace.client.groups.subscriptions import encode_assignment, encode_subscription
from tailrace.model.ids import Id, PartitionName
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import Machine
from tailrace.wire.compile import decode, encode, is_flexible
from tailrace.wire.errors import Error
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT, FramedProtocol, FrameError
from tailrace.wire.headers import read_request_header, response_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiRange, ApiVersionsResponse
from tailrace.wire.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse, OwnedTopic
from tailrace.wire.messages.fetch import FetchResponse, PartitionFetched, TopicFetched
from tailrace.wire.messages.find_coordinator import FindCoordinatorResponse
from tailrace.wire.messages.heartbeat import HeartbeatResponse
from tailrace.wire.messages.init_producer_id import InitProducerIdResponse
from tailrace.wire.messages.join_group import JoinedMember, JoinGroupResponse
from tailrace.wire.messages.leave_group import LeaveGroupResponse
from tailrace.wire.messages.metadata import BrokerMetadata, MetadataResponse, PartitionMetadata, TopicMetadata
from tailrace.wire.messages.offset_commit import OffsetCommitResponse
from tailrace.wire.messages.offset_fetch import FetchedPartition, FetchedTopic, OffsetFetchResponse
from tailrace.wire.messages.produce import PartitionProduced, ProduceResponse, TopicProduced
from tailrace.wire.messages.share_acknowledge import (
    PartitionAcknowledged,
    ShareAcknowledgeResponse,
    TopicAcknowledged,
)
from tailrace.wire.messages.share_fetch import (
    AcquiredRecords,
    PartitionShareFetched,
    ShareFetchResponse,
    TopicShareFetched,
)
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from tailrace.wire.messages.sync_group import SyncGroupResponse

PORT: Final = 9092
TOPIC_ID: Final = Id(b"t" * 16)
TOPIC_IDS: Final = (TOPIC_ID, TOPIC_ID, Id(b"u" * 16))  # that of topic t in all metadata, and one that nobody knows
FLEXIBLE_SINCE: Final = {
    key: next((one for one in range(pair.versions.first, pair.versions.last + 1) if is_flexible(pair.request, one)), 99)
    for key, pair in MESSAGES.items()
}
BEHAVIOURS: Final = (
    "proper",
    "silent",
    "late",
    "garbage",
    "huge frame",
    "wrong number",
    "closes",
    "resets",
    "twice",
    "error",
    "cut short",
)


class MisbehavingBroker(FramedProtocol):
    def __init__(self, cluster: "Misbehaving", number: int) -> None:
        super().__init__(100_000_000)
        self._cluster = cluster
        self._number = number
        self._rng = cluster.rng

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._cluster.open += 1
        self._cluster.opened += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._cluster.open -= 1

    def frame_refused(self, error: FrameError) -> None:
        raise AssertionError(f"the client sent a frame that is none: {error}")

    def frame_received(self, frame: memoryview) -> None:
        key, version, number, _, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
        request: Any = decode(MESSAGES[key].request, version, bytes(frame), at)[0]
        self._cluster.requests += 1
        behaviour = self._rng.choices(BEHAVIOURS, self._cluster.weights)[0]
        if behaviour == "silent":
            return
        if behaviour == "closes" and self.transport is not None:
            self.transport.close()
            return
        if behaviour == "resets" and self.transport is not None:
            self.transport.abort()
            return
        answer = self._cluster.answer(key, request, self._number, is_error=behaviour == "error")
        body = response_header(key, number + (behaviour == "wrong number"), version >= FLEXIBLE_SINCE[key])
        out = bytearray(LENGTH_BYTES) + body + (encode(answer, version) if answer is not None else b"")
        LENGTH_LAYOUT.pack_into(out, 0, len(out) - LENGTH_BYTES)
        if behaviour == "garbage":
            out[LENGTH_BYTES:] = self._rng.randbytes(len(out) - LENGTH_BYTES)
        elif behaviour == "huge frame":
            LENGTH_LAYOUT.pack_into(out, 0, 2**31 - 1)
        elif behaviour == "cut short":
            del out[LENGTH_BYTES + (len(out) - LENGTH_BYTES) // 2 :]
            LENGTH_LAYOUT.pack_into(out, 0, len(out) - LENGTH_BYTES)
        elif behaviour == "twice":
            out += bytes(out)
        delay = self._rng.uniform(0.0, 8.0) if behaviour == "late" else self._cluster.delay_s(answer)
        asyncio.get_running_loop().call_later(delay, self._write, bytes(out))

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)


class Misbehaving:
    """Three such brokers, which also disagree about who leads what."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.weights = [self.rng.choice([3.0, 20.0]), *(self.rng.choice([0.0, 0.5, 3.0]) for _ in BEHAVIOURS[1:])]
        self._cluster_ids = self.rng.choice([["one"], ["one"], ["one"], ["one", "two"]])
        self._offers_old_versions = self.rng.random() < 0.1
        self.open = self.opened = self.requests = 0

    def delay_s(self, answer: Any) -> float:
        """Before a proper answer is sent."""
        return 0.0

    async def listen(self, machine: Machine, number: int) -> None:
        net = machine.boot().net
        await machine.run(net.listen(lambda: MisbehavingBroker(self, number), "0.0.0.0", PORT))

    def answer(self, key: int, request: Any, number: int, *, is_error: bool) -> Any:
        code = self.rng.choice([one for one in Error if one]) if is_error else Error.NONE
        match MESSAGES[key].name:
            case "ApiVersions":
                last = {one: 0 if self._offers_old_versions else pair.versions.last for one, pair in MESSAGES.items()}
                offered = tuple(ApiRange(api_key=one, min_version=0, max_version=last[one]) for one in MESSAGES)
                return ApiVersionsResponse(api_keys=offered)
            case "Metadata":
                return self._metadata(code)
            case "FindCoordinator":
                return FindCoordinatorResponse(error_code=code, node_id=1, host=f"h{self.rng.randint(1, 4)}", port=PORT)
            case "InitProducerId":
                return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=0)
            case "Produce":
                return ProduceResponse(
                    topics=tuple(
                        TopicProduced(
                            name=topic.name,
                            partitions=tuple(
                                PartitionProduced(partition=one.partition, error_code=code, base_offset=0)
                                for one in topic.partitions
                            ),
                        )
                        for topic in request.topics
                    )
                )
            case "Fetch":
                part = PartitionFetched(
                    partition=0, error_code=code, high_watermark=0, records=self.rng.choice([b"", b"x" * 70])
                )
                return FetchResponse(topics=(TopicFetched(name="t", partitions=(part,)),), session_id=1)
            case "OffsetCommit":
                return OffsetCommitResponse(topics=())
            case "ShareGroupHeartbeat" | "ShareFetch" | "ShareAcknowledge" as name:
                return self._answer_sharing(name, code, request)
        return self._answer_member(MESSAGES[key].name, code)

    def _answer_member(self, name: str, code: int) -> Any:
        """Answers to a member of a group, which contradict each other; the bytes of its leader may be damaged."""
        owned = self.rng.choice([(), (0,), (0, 1)])
        match name:
            case "JoinGroup":
                data = self.rng.choice([encode_subscription(("t",)), encode_subscription(()), b"", b"x" * 9])
                members = tuple(JoinedMember(member_id=one, metadata=data) for one in ("m", "n"))
                leader, protocol = self.rng.choice("mn"), self.rng.choice(["range", "roundrobin", "unheard-of"])
                return JoinGroupResponse(
                    error_code=code,
                    generation_id=1,
                    protocol_name=protocol,
                    leader=leader,
                    member_id="m",
                    members=members if leader == "m" else (),
                )
            case "SyncGroup":
                data = encode_assignment(tuple(PartitionName("t", one) for one in owned))
                return SyncGroupResponse(error_code=code, assignment=self.rng.choice([data, data, data[:-1]]))
            case "Heartbeat":
                return HeartbeatResponse(error_code=self.rng.choice([code, Error.REBALANCE_IN_PROGRESS]))
            case "LeaveGroup":
                return LeaveGroupResponse(error_code=code)
            case "ConsumerGroupHeartbeat":
                assigned = Assignment(
                    topic_partitions=(OwnedTopic(topic_id=self.rng.choice(TOPIC_IDS), partitions=owned),)
                )
                return ConsumerGroupHeartbeatResponse(
                    error_code=code,
                    member_id=self.rng.choice(["m", None]),
                    member_epoch=self.rng.choice([-1, 0, 1, 2]),
                    heartbeat_interval_ms=self.rng.choice([-1, 0, 500]),
                    assignment=self.rng.choice([assigned, None]),
                )
            case "OffsetFetch":
                part = FetchedPartition(partition=0, committed_offset=self.rng.choice([-1, 0, 5]), error_code=code)
                return OffsetFetchResponse(topics=(FetchedTopic(name="t", partitions=(part,)),))
        return None

    def _answer_sharing(self, name: str, code: int, request: Any) -> Any:
        """Answers to a member of a share group: records that were not asked for, ranges that cannot be."""
        match name:
            case "ShareGroupHeartbeat":
                assigned = Assignment(
                    topic_partitions=(OwnedTopic(topic_id=self.rng.choice(TOPIC_IDS), partitions=(0,)),)
                )
                return ShareGroupHeartbeatResponse(
                    error_code=code,
                    member_epoch=self.rng.choice([-1, 0, 1, 2]),
                    heartbeat_interval_ms=self.rng.choice([-1, 0, 500]),
                    assignment=self.rng.choice([assigned, assigned, None]),
                )
            case "ShareFetch":
                first = self.rng.choice([0, 3, -5])
                acquired = AcquiredRecords(
                    first_offset=first, last_offset=self.rng.choice([0, 5, 2**60]), delivery_count=1
                )
                records = self.rng.choice([b"", b"x" * 70, bytes(build_batch([NewRecord(b"v")] * 4))])
                part = PartitionShareFetched(
                    partition=self.rng.choice([0, 7]),
                    error_code=self.rng.choice([0, code]),
                    acknowledge_error_code=self.rng.choice([0, code, Error.INVALID_RECORD_STATE]),
                    records=records,
                    acquired_records=(acquired,),
                )
                return ShareFetchResponse(
                    error_code=self.rng.choice([0, code]),
                    acquisition_lock_timeout_ms=self.rng.choice([-1, 0, 900]),
                    topics=(TopicShareFetched(topic_id=self.rng.choice(TOPIC_IDS), partitions=(part,)),),
                )
            case "ShareAcknowledge":
                parts = tuple(
                    TopicAcknowledged(
                        topic_id=topic.topic_id,
                        partitions=tuple(
                            PartitionAcknowledged(
                                partition=one.partition,
                                error_code=self.rng.choice([0, code, Error.INVALID_RECORD_STATE]),
                            )
                            for one in topic.partitions
                        ),
                    )
                    for topic in request.topics
                )
                return ShareAcknowledgeResponse(error_code=code, topics=self.rng.choice([parts, ()]))
        return None

    def _metadata(self, code: int) -> MetadataResponse:
        # h4 does not exist: metadata that names a dead broker. Each answer may name another leader, so that they loop.
        brokers = tuple(BrokerMetadata(node_id=one, host=f"h{one}", port=PORT) for one in (1, 2, 3, 4))
        leader, epoch = self.rng.choice([-1, 1, 2, 3, 4, 9]), self.rng.choice([-1, 0, 1, 5])
        part = PartitionMetadata(partition=0, leader_id=leader, leader_epoch=epoch, replicas=(), isr=())
        topic = TopicMetadata(error_code=code, name="t", topic_id=TOPIC_ID, partitions=(part,))
        return MetadataResponse(
            brokers=brokers, cluster_id=self.rng.choice(self._cluster_ids), controller_id=1, topics=(topic,)
        )
