"""All clients of a story: who writes what in which manner, who reads, who looks, who makes topics and deletes them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tailrace.broker.machines.runtime import MachineRuntime
from tailrace.cluster.controller import Controller
from tailrace.testing.scenarios.cluster.clients.classic_member import ClassicProtocolMember
from tailrace.testing.scenarios.cluster.clients.consumer_member import ConsumerProtocolMember
from tailrace.testing.scenarios.cluster.clients.metadata_watcher import MetadataWatcher
from tailrace.testing.scenarios.cluster.clients.read_committed_consumer import ReadCommittedConsumer
from tailrace.testing.scenarios.cluster.clients.reader import Reader
from tailrace.testing.scenarios.cluster.clients.rival_controllers import RivalControllers
from tailrace.testing.scenarios.cluster.clients.router import Router
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
from tailrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic

KEPT_TOPIC: Final = "t"
KEPT_PARTITIONS: Final = 2
MADE_PREFIX: Final = "r"
SAFE: Final = ProduceMode(idempotent=True, acks=-1)
PLAIN: Final = ProduceMode(idempotent=False, acks=-1)
HURRIED: Final = ProduceMode(idempotent=False, acks=1)
WRITERS: Final = ((0, SAFE), (0, PLAIN), (1, SAFE), (1, HURRIED))
MEMBERS: Final = 2
AGAIN_SECONDS: Final = 0.2


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
        watch: ClusterObserver,
        surface: "Callable[[asyncio.Task[Any]], None]",
    ) -> None:
        self._surface = surface
        self._servers = servers
        self._world = world
        self._plan = plan
        self._machine = world.machine("clients")
        self._ports = self._machine.boot()
        claims = watch.claims
        self._changer = TopicRecreator(self._router("changer"), MADE_PREFIX, plan.replicas, self._controlling)
        self.writers = [
            Writer(self._router(f"w{number}"), claims, manner, lambda: KEPT_TOPIC, partition, plan.calm)
            for number, (partition, manner) in enumerate(WRITERS)
        ]
        self.writers.append(Writer(self._router("w9"), claims, SAFE, lambda: self._changer.topic, 0, plan.calm))
        self._reader = Reader(self._router("reader"), claims, self._readable)
        self._looker = MetadataWatcher(self._router("looker"), watch.leaders)
        skeptic = RivalControllers(self._router("skeptic"), plan.replicas, self._controlling)
        self._groups = [GroupHistory(), GroupHistory()]
        grouped: list[Client] = []
        for number in range(MEMBERS):
            grouped.append(
                ClassicProtocolMember(self._router(f"m{number}"), self._groups[0], KEPT_TOPIC, KEPT_PARTITIONS)
            )
            grouped.append(ConsumerProtocolMember(self._router(f"k{number}"), self._groups[1], KEPT_TOPIC))
        self._outcomes = TransactionOutcomes()
        self._transactors = [
            TransactionWorkload(self._router(f"x{number}"), self._outcomes, KEPT_TOPIC, KEPT_PARTITIONS, versions)
            for number, versions in enumerate((CLASSIC, KIP_890))
        ]
        self._stable = [self._stable_reader("early", comes_late=False), self._stable_reader("late", comes_late=True)]
        self._all: list[Client] = [*self.writers, self._reader, self._looker, self._changer, skeptic]
        self._all += [*grouped, *self._transactors, *self._stable]

    def _router(self, name: str) -> Router:
        return Router(self._ports, self._world.random, name, lambda: [server.name for server in self._servers])

    def _stable_reader(self, name: str, *, comes_late: bool) -> ReadCommittedConsumer:
        return ReadCommittedConsumer(
            self._router(name),
            self._outcomes,
            KEPT_TOPIC,
            KEPT_PARTITIONS,
            lambda: not self._writing,
            comes_late=comes_late,
        )

    def _controlling(self, host: str) -> MachineRuntime[Controller] | None:
        """What makes a broker the controller: another object each time it becomes it; None while it is not."""
        server = next(server for server in self._servers if server.name == host)
        return server.node.controller_role.runtime if server.serves and server.node is not None else None

    def _readable(self) -> list[tuple[str, int]]:
        return [*((KEPT_TOPIC, number) for number in range(KEPT_PARTITIONS)), (self._changer.topic, 0)]

    async def begin(self) -> None:
        """Make the topic that stays, and set everybody to work."""
        await self._machine.run(self._make_kept())
        for one in self._all:
            task = self._machine.spawn(one.run(), one.name)
            task.add_done_callback(self._surface)

    async def _make_kept(self) -> None:
        replicas = min(self._plan.replicas, len(self._servers))
        topic = NewTopic(name=KEPT_TOPIC, num_partitions=KEPT_PARTITIONS, replication_factor=replicas)
        router = self._router("maker")
        while True:
            answer: CreateTopicsResponse | None = await router.ask_anyone(
                CreateTopicsRequest(topics=(topic,)), CREATE_VERSION
            )
            if answer is not None and answer.topics[0].error_code in (0, Error.TOPIC_ALREADY_EXISTS):
                return
            await asyncio.sleep(AGAIN_SECONDS)

    def end(self) -> None:
        """Let everybody come to an end: writers once all they sent is acknowledged."""
        for one in self._all:
            one.stopping = True

    @property
    def _writing(self) -> list[str]:
        writing: list[Writer | TransactionWorkload] = [*self.writers, *self._transactors]
        return [one.name for one in writing if not (one.stopping and one.done)]

    @property
    def busy(self) -> str | None:
        """Who is not done yet with what it began."""
        waiting = self._writing
        closing: list[TopicRecreator | ReadCommittedConsumer] = [self._changer, *self._stable]
        waiting += [one.name for one in closing if one.stopping and not one.done]
        return ", ".join(waiting) or None

    def check(self) -> None:
        """After everything has converged: what is certain to be there is."""
        self._outcomes.check()
        for server in self._servers:
            assert server.node is not None
            topic = server.node.hosted.image.topics.get(self._changer.topic)
            if topic is None or topic.id != self._changer.there:
                raise InvariantViolated(
                    Invariant.NOTHING_LOST, f"topic {self._changer.topic} was made, {server.name} has {topic}"
                )

    def count(self, coverage: Coverage) -> None:
        coverage.acknowledged = sum(writer.acknowledged for writer in self.writers)
        coverage.hurried = sum(writer.hurried for writer in self.writers)
        coverage.refused = sum(writer.refused for writer in self.writers)
        coverage.batches_read, coverage.read_from_followers = self._reader.batches, self._reader.from_followers
        coverage.looks_at_metadata = self._looker.looks
        coverage.transactions_committed = self._outcomes.count(Outcome.COMMITTED)
        coverage.transactions_aborted = self._outcomes.count(Outcome.ABORTED)
        coverage.generations = sum(group.generations for group in self._groups)
        coverage.commits = sum(group.commits for group in self._groups)
        coverage.topics_made, coverage.topics_recreated = self._changer.made, self._changer.recreated
