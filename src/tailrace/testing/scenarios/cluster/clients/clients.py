"""All clients of a run: producers, consumers, group members, transactions, and admin clients.

Their names are client ids on the wire, so they are part of the trace digest.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tailrace.broker.machines.runtime import MachineRuntime
from tailrace.cluster.controller import Controller
from tailrace.model.ids import TopicPartition
from tailrace.testing.scenarios.cluster.clients.classic_member import ClassicProtocolMember
from tailrace.testing.scenarios.cluster.clients.client_workload import ClientWorkload
from tailrace.testing.scenarios.cluster.clients.consumer_member import ConsumerProtocolMember
from tailrace.testing.scenarios.cluster.clients.keyed_workload import KEYED_TOPIC, KeyedWorkload, topic_settings
from tailrace.testing.scenarios.cluster.clients.metadata_watcher import MetadataWatcher
from tailrace.testing.scenarios.cluster.clients.read_committed_consumer import ReadCommittedConsumer
from tailrace.testing.scenarios.cluster.clients.reader import Reader
from tailrace.testing.scenarios.cluster.clients.rival_controllers import RivalControllers
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.share_group import DEAD_LETTER_TOPIC
from tailrace.testing.scenarios.cluster.clients.share_tenures import ShareTenures
from tailrace.testing.scenarios.cluster.clients.share_workload import ShareWorkload
from tailrace.testing.scenarios.cluster.clients.topic_recreator import CREATE_VERSION, TopicRecreator
from tailrace.testing.scenarios.cluster.clients.transaction_workload import TransactionWorkload
from tailrace.testing.scenarios.cluster.clients.transactional_producer import CLASSIC, KIP_890
from tailrace.testing.scenarios.cluster.clients.writer import ProduceMode, Writer
from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observer import ClusterObserver
from tailrace.testing.scenarios.cluster.invariants.transaction_outcomes import TransactionOutcomes
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World
from tailrace.testing.transaction_history import Outcome
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    NewTopicConfig,
)

KEPT_TOPIC: Final = "t"
KEPT_PARTITIONS: Final = 2
RECREATED_PREFIX: Final = "r"
SAFE: Final = ProduceMode(idempotent=True, acks=-1)
PLAIN: Final = ProduceMode(idempotent=False, acks=-1)
ACKS_1: Final = ProduceMode(idempotent=False, acks=1)
WRITERS: Final = ((0, SAFE), (0, PLAIN), (1, SAFE), (1, ACKS_1))  # partition and mode
MEMBERS: Final = 2  # of each group
RETRY_SECONDS: Final = 0.2


class Client(Protocol):
    name: str
    stopping: bool

    async def run(self) -> None: ...


class Clients:
    def __init__(
        self,
        world: World,
        plan: Plan,
        servers: Sequence[Server],
        observer: ClusterObserver,
        raise_failure: "Callable[[asyncio.Task[Any]], None]",
    ) -> None:
        self._raise_failure = raise_failure
        self._servers = servers
        self._world = world
        self._plan = plan
        self._machine = world.machine("clients")
        self._ports = self._machine.boot()
        claims, rest = observer.claims, plan.producer_rest_max_seconds
        self._recreator = TopicRecreator(self._router("changer"), RECREATED_PREFIX, plan.replicas, self._controller_of)
        self.writers = [
            Writer(self._router(f"w{number}"), claims, mode, lambda: KEPT_TOPIC, partition, rest)
            for number, (partition, mode) in enumerate(WRITERS)
        ]
        self.writers.append(Writer(self._router("w9"), claims, SAFE, lambda: self._recreator.topic, 0, rest))
        self._reader = Reader(self._router("reader"), claims, self._readable)
        self._metadata_watcher = MetadataWatcher(self._router("looker"), observer.leaders)
        rival_controllers = RivalControllers(self._router("skeptic"), plan.replicas, self._controller_of)
        self._groups = [GroupHistory(), GroupHistory()]
        members: list[Client] = []
        for number in range(MEMBERS):
            members.append(
                ClassicProtocolMember(self._router(f"m{number}"), self._groups[0], KEPT_TOPIC, KEPT_PARTITIONS)
            )
            members.append(ConsumerProtocolMember(self._router(f"k{number}"), self._groups[1], KEPT_TOPIC))
        self._outcomes = TransactionOutcomes()
        self._transactions = [
            TransactionWorkload(self._router(f"x{number}"), self._outcomes, KEPT_TOPIC, KEPT_PARTITIONS, versions)
            for number, versions in enumerate((CLASSIC, KIP_890))
        ]
        self._read_committed = [
            self._read_committed_consumer("early", starts_late=False),
            self._read_committed_consumer("late", starts_late=True),
        ]
        numbers = range(KEPT_PARTITIONS)
        self._own = [ClientWorkload(self._router(f"c{number}"), KEPT_TOPIC, number) for number in numbers]
        self._all: list[Client] = [*self.writers, self._reader, self._metadata_watcher, self._recreator]
        self._all += [rival_controllers, *members, *self._transactions, *self._read_committed, *self._own]
        self._keyed: KeyedWorkload | None = None
        if plan.compacts:
            self._keyed = KeyedWorkload(self._router, plan, observer.compacted)
            self._all += self._keyed.clients
        self._shares: ShareWorkload | None = None
        if plan.share_groups:
            tenures = ShareTenures(world, servers, observer.shares)
            self._shares = ShareWorkload(
                self._router,
                world.network,
                plan.share_groups,
                servers,
                tenures,
                KEPT_TOPIC,
                KEPT_PARTITIONS,
                lambda: not self._producing,
            )
            self._all += [*self._shares.members, *self._shares.watchers]
            if plan.late_share_groups:
                self._all.append(self._shares.opening)

    def _router(self, name: str) -> Router:
        return Router(self._ports, self._world.random, name, lambda: [server.name for server in self._servers])

    def _read_committed_consumer(self, name: str, *, starts_late: bool) -> ReadCommittedConsumer:
        return ReadCommittedConsumer(
            self._router(name),
            self._outcomes,
            KEPT_TOPIC,
            KEPT_PARTITIONS,
            lambda: not self._writing,
            starts_late=starts_late,
        )

    def _controller_of(self, host: str) -> MachineRuntime[Controller] | None:
        """The runtime with which a broker is the controller, a new one in each term; None while it is not."""
        server = next(server for server in self._servers if server.name == host)
        return server.node.control.role.runtime if server.serves and server.node is not None else None

    def _readable(self) -> list[tuple[str, int]]:
        return [*((KEPT_TOPIC, number) for number in range(KEPT_PARTITIONS)), (self._recreator.topic, 0)]

    async def begin(self) -> None:
        """Create the topic that is kept, and start all clients."""
        await self._machine.run(self._prepare())
        for client in self._all:
            task = self._machine.spawn(client.run(), client.name)
            task.add_done_callback(self._raise_failure)

    async def _prepare(self) -> None:
        router = self._router("maker")
        await self._create_topic(router, KEPT_TOPIC, KEPT_PARTITIONS)
        if self._keyed is not None:
            await self._create_topic(router, KEYED_TOPIC, 1, topic_settings(self._plan))
        if self._shares is not None:
            await self._create_topic(router, DEAD_LETTER_TOPIC, 1)
            if not self._plan.late_share_groups:
                await self._shares.opening.open()

    async def _create_topic(
        self, router: Router, name: str, partitions: int, configs: tuple[NewTopicConfig, ...] = ()
    ) -> None:
        replicas = min(self._plan.replicas, len(self._servers))
        topic = NewTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)
        while True:
            answer: CreateTopicsResponse | None = await router.call_any(
                CreateTopicsRequest(topics=(topic,)), CREATE_VERSION
            )
            if answer is not None and answer.topics[0].error_code in (0, Error.TOPIC_ALREADY_EXISTS):
                return
            await asyncio.sleep(RETRY_SECONDS)

    def end(self) -> None:
        """Let all clients finish; producers finish when everything they sent is acknowledged."""
        for client in self._all:
            client.stopping = True

    @property
    def _producing(self) -> list[str]:
        """All clients that write to the topic that is kept, and have not finished."""
        return self._writing + [one.name for one in self._own if not one.has_written]

    @property
    def _writing(self) -> list[str]:
        writing: list[Writer | TransactionWorkload] = [*self.writers, *self._transactions]
        return [client.name for client in writing if not (client.stopping and client.done)]

    @property
    def busy(self) -> str | None:
        """The clients that have not finished yet."""
        busy = self._writing
        others: list[TopicRecreator | ReadCommittedConsumer | ClientWorkload]
        others = [self._recreator, *self._read_committed, *self._own]
        busy += [client.name for client in others if client.stopping and not client.done]
        if self._keyed is not None:
            busy += self._keyed.busy
        if self._shares is not None:
            busy += self._shares.busy
        return f"these clients have not finished: {', '.join(busy)}" if busy else None

    def check(self) -> None:
        """Check the transactions and the recreated topic, after the cluster has converged."""
        self._outcomes.check()
        if self._shares is not None:
            self._shares.check()
        for server in self._servers:
            assert server.node is not None
            if self._keyed is not None:
                self._keyed.check(TopicPartition(server.node.hosted.image.topics[KEYED_TOPIC].id, 0))
            topic = server.node.hosted.image.topics.get(self._recreator.topic)
            if topic is None or topic.id != self._recreator.topic_id:
                raise InvariantViolated(
                    Invariant.NOTHING_LOST, f"topic {self._recreator.topic} was created, but {server.name} has {topic}"
                )

    def count(self, coverage: Coverage) -> None:
        coverage.acknowledged = sum(writer.acknowledged for writer in self.writers)
        coverage.acknowledged_acks_1 = sum(writer.acknowledged_acks_1 for writer in self.writers)
        coverage.acknowledged_to_client = sum(client.acknowledged for client in self._own)
        coverage.refused = sum(writer.refused for writer in self.writers)
        coverage.batches_read, coverage.read_from_followers = self._reader.batches, self._reader.from_followers
        coverage.metadata_responses = self._metadata_watcher.responses
        coverage.transactions_committed = self._outcomes.count(Outcome.COMMITTED)
        coverage.transactions_aborted = self._outcomes.count(Outcome.ABORTED)
        coverage.generations = sum(group.generations for group in self._groups)
        coverage.offset_commits = sum(group.commits for group in self._groups)
        if self._shares is not None:
            self._shares.count(coverage)
        coverage.topics_created, coverage.topics_recreated = self._recreator.created, self._recreator.recreated
