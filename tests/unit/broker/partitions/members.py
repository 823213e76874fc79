"""Single quorum members in a simulated world: a real log, a real state machine, and ports that record all calls."""

from collections.abc import Coroutine
from typing import Any

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.partition import Partition
from tailrace.log.log import Log
from tailrace.model.ids import NO_EPOCH, BrokerId, Id, Offset, TopicPartition
from tailrace.model.settings import Settings
from tailrace.model.topics import TopicSettings
from tailrace.ports import Clock, Ports
from tailrace.raft.effects import Vote
from tailrace.raft.messages import Message
from tailrace.raft.replica import Replica, Voter
from tailrace.testing.simulation import Machine

voters = tuple(Voter(BrokerId(number), Id(bytes([number]) * 16)) for number in (1, 2, 3))
DAY_MS = 86_400_000


class Noting:
    """Ports that only record what they are asked to do."""

    def __init__(self, machine: Machine, ports: Ports) -> None:
        self._machine = machine
        self._clock = ports.clock
        self.votes: list[Vote] = []
        self.sent: list[Message] = []
        self.woken: list[QuorumMember] = []

    @property
    def clock(self) -> Clock:
        return self._clock

    def chance(self) -> float:
        return 0.0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._machine.spawn(work)

    def store_vote(self, member: QuorumMember, vote: Vote) -> None:
        self.votes.append(vote)

    def send(self, member: QuorumMember, message: Message) -> None:
        self.sent.append(message)

    def wake(self, member: QuorumMember) -> None:
        self.woken.append(member)

    def fetch_changed(self, member: QuorumMember) -> None:
        pass

    def fetch_again(self, member: QuorumMember) -> None:
        pass

    def durable_moved(self, member: QuorumMember) -> None:
        pass

    def leader_changed(self, partition: Partition) -> None:
        pass

    async def losing_log(self, partition: Partition) -> None:
        pass

    def became_active(self, partition: Partition) -> None:
        pass

    def repaired(self, partition: Partition) -> None:
        pass


async def a_member(ports: Ports, shell: Noting, number: int = 0) -> QuorumMember:
    """Broker 1's replica of a fresh partition of three."""
    key = TopicPartition(Id(b"t" * 16), number)
    log = await Log.open(
        f"/data/{key}",
        ports,
        settings=TopicSettings.of({}, Settings()),
        fsync="always",
        recovery=None,
        clean=False,
        producer_expiration_ms=DAY_MS,
    )
    replica = Replica(
        me=voters[0],
        epoch=NO_EPOCH,
        log_end=Offset(0),
        high_watermark=Offset(0),
        voters=voters,
        epochs=log.epochs,
        now=ports.clock.monotonic(),
    )
    return Partition(f"t-{number}", key, log, replica, shell, events=shell).member
