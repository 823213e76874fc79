"""Brokers that consist of `Peers` only, on simulated machines, with a record of everything that arrives."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from tailrace.broker.peers import Lane, LaneKind, OwnLevels, PeerConnection, Peers
from tailrace.cluster.features import LevelRange
from tailrace.model.faults import NotController
from tailrace.model.ids import NO_ID, BrokerId, Epoch, Id, Offset, TopicPartition
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.raft.messages import Message, VoteRequest
from tailrace.raft.voters import Voter
from tailrace.testing.simulation import World
from tailrace.wire.framing import LENGTH_LAYOUT
from tailrace.wire.headers import request_header, response_header
from tailrace.wire.messages.peers.forward import Forward, ForwardAnswer
from tailrace.wire.messages.peers.hand_over import HandOver
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster, LeaveClusterAnswer
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds

T = TypeVar("T")
Note = tuple[str, int, str]

CLUSTER_ID: Final = "the-cluster"
PEER_PORT: Final = 9192
MEETING_MAX_S: Final = 30.0
SLOW: Final = LeaveCluster(broker_id=1, incarnation_id=NO_ID)  # answered when `may_leave` is set
LEVELS: Final = OwnLevels(supported=LevelRange(1, 2), in_force=lambda: 1)
JOINING: Final = JoinCluster(directory_id=Id(b"d" * 16), incarnation_id=Id(b"i" * 16), peer_host="b9", peer_port=1)


def voter(broker: int, disk: int = 0) -> Voter:
    return Voter(BrokerId(broker), Id(bytes([broker, disk]) + bytes(14)))


def key(number: int) -> TopicPartition:
    return TopicPartition(Id(b"topic-%010d" % number), number % 7)


def vote_request(sender: Voter, to: int, epoch: int) -> VoteRequest:
    return VoteRequest(sender=sender, to=voter(to), epoch=Epoch(epoch), end=Offset(7), last_epoch=2)


def fetch_frame(body: bytes, number: int = 1, version: int = 18) -> bytes:
    frame = request_header(1, version, number, None, flexible=True) + body
    return LENGTH_LAYOUT.pack(len(frame)) + frame


def forward(number: int) -> Forward:
    return Forward(api_key=3, api_version=9, body=b"%d" % number * 10_000)


class Notes:
    """What the events of one broker brought. Fetches are answered with their own bytes."""

    def __init__(self) -> None:
        self.lanes: list[Note] = []
        self.frames: list[list[tuple[BrokerId, TopicPartition, Message]]] = []
        self.fetches: list[tuple[LaneKind, bytes]] = []
        self.fetched_frames: list[bytes] = []
        self.lost: list[tuple[BrokerId, LaneKind]] = []
        self.callers: list[BrokerId] = []
        self.may_leave = asyncio.Event()

    @property
    def epochs(self) -> list[int]:
        """Of all messages that came, which number them."""
        return [message.epoch for frame in self.frames for _, _, message in frame]

    def raft_messages(self, sender: BrokerId, messages: Sequence[tuple[TopicPartition, Message]]) -> None:
        self.frames.append([(sender, partition, message) for partition, message in messages])

    def fetch(self, peer: PeerConnection, frame: memoryview, at: int, version: int, correlation_id: int) -> None:
        self.fetches.append((peer.lane, bytes(frame[at:])))
        answer = response_header(1, correlation_id, flexible=True)
        peer.send([LENGTH_LAYOUT.pack(len(answer) + len(frame) - at), answer, bytes(frame[at:])])

    def fetch_connection_lost(self, peer: PeerConnection) -> None:
        self.lost.append((peer.broker, peer.lane))

    async def call(self, caller: BrokerId, request: object) -> object:
        self.callers.append(caller)
        match request:
            case Forward(body=body):
                return ForwardAnswer(body=body)
            case LeaveCluster():
                await self.may_leave.wait()
                return LeaveClusterAnswer()
            case JoinCluster():
                return JoinClusterAnswer(broker_id=7, cluster_id=CLUSTER_ID)
            case HandOver():
                return ForwardAnswer()  # as only a bug of ours would
            case TakeProducerIds():
                raise NotController("ask broker 3", BrokerId(3))
        raise ArithmeticError("a bug of ours")

    def fetched(self, lane: Lane, frame: memoryview) -> None:
        self.fetched_frames.append(bytes(frame))

    def lane_up(self, lane: Lane) -> None:
        self.lanes.append(("up", lane.broker, str(lane.kind)))

    def lane_down(self, lane: Lane) -> None:
        assert not lane.up
        self.lanes.append(("down", lane.broker, str(lane.kind)))


class Talker(Notes):
    """One broker on its machine."""

    def __init__(self, world: World, number: int, cluster: str = CLUSTER_ID, levels: OwnLevels = LEVELS) -> None:
        super().__init__()
        self._levels = levels
        self.cluster = cluster
        self.me = voter(number)
        self.machine = world.machine(f"b{number}")
        self.ports: Ports
        self.peers: Peers

    async def boot(self) -> None:
        self.ports = self.machine.boot()
        await self.machine.run(self._start())

    async def _start(self) -> None:
        self.peers = Peers(self.ports, Settings(), self.me, self.cluster, self, self.call, self._levels)
        await self.peers.listen("0.0.0.0", PEER_PORT)

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        return self.machine.run(work)

    async def do(self, step: Callable[[Peers], T]) -> T:
        """Something that is done inside the broker's process, in one turn of the loop."""

        async def once() -> T:
            return step(self.peers)

        return await self.machine.run(once())

    async def meet(self, *others: "Talker") -> None:
        for other in others:
            broker, host = other.me.broker, other.machine.name
            await self.do(lambda peers, b=broker, h=host: peers.know(b, h, PEER_PORT))  # type: ignore[misc]


def call(one: Talker, request: object, timeout_s: float = 10.0) -> "asyncio.Future[Any]":
    return one.run(one.peers.call(BrokerId(2), request, timeout_s))


async def strangers(world: World, count: int = 2) -> list[Talker]:
    """So many brokers that do not know each other yet."""
    talkers = [Talker(world, number) for number in range(1, count + 1)]
    for one in talkers:
        await one.boot()
    return talkers


async def meeting(world: World, count: int = 2) -> list[Talker]:
    """So many brokers, all of which know each other and are connected."""
    talkers = await strangers(world, count)
    for one in talkers:
        await one.meet(*(other for other in talkers if other is not one))
    await world.until(lambda: all(len(one.peers.live) == count - 1 for one in talkers), within_seconds=MEETING_MAX_S)
    return talkers


def in_world(scenario: Callable[[World], Coroutine[Any, Any, None]], seed: int = 7) -> str:
    """Run it; the digest of what happened."""
    with World(seed, keep_lines=True) as world:
        world.run(scenario(world))
        return world.digest
