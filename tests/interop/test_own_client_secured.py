"""Our own client against Apache Kafka with SASL and TLS: every mechanism, both drivers, and clear errors."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fetched import Missing
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.consumer import Consumer
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, SecurityRefused
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import LATEST, offsets_at
from tailrace.client.producer import NotWritten, Producer, ProducerOptions
from tailrace.client.sasl import MECHANISMS, Mechanism, Sasl
from tailrace.model.addresses import parse_addresses
from tailrace.model.ids import PartitionName
from tailrace.ports import TlsFiles, system_ports
from tailrace.testing import Broker
from tests.certificates import Authority
from tests.secured_kafka import PASSWORD, USERNAME, Addresses, jaas, secured_kafka
from tests.unit.cli.program import Ran, run_tailrace

pytestmark = pytest.mark.long

LIMITS = Limits(request_s=10.0, retry_s=20.0)
DEADLINE_S = 60.0
COUNT = 100
EVERY_MECHANISM = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Addresses]:
    try:
        with secured_kafka(tmp_path_factory.mktemp("kafka"), authority.keystore(), authority.truststore) as addresses:
            yield addresses
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def partition() -> PartitionName:
    return PartitionName(f"t-{uuid.uuid4().hex[:8]}", 0)


def login(mechanism: Mechanism, password: str = PASSWORD) -> Sasl:
    return Sasl(mechanism=mechanism, username=USERNAME, password=password)


def with_cluster(
    bootstrap: str, work: Callable[[Cluster], Awaitable[None]], *, sasl: Sasl | None, tls: TlsFiles | None = None
) -> None:
    async def run() -> None:
        ports = system_ports()
        context = None if tls is None else ports.net.load_tls(tls)
        driver = AsyncioDriver(ports.net, ports.clock, ports.random, tls=context, sasl=sasl)
        cluster = Cluster(driver, parse_addresses(bootstrap), LIMITS)
        async with asyncio.timeout(DEADLINE_S):
            await work(cluster)
        cluster.close()

    asyncio.run(run())


async def write_and_read(cluster: Cluster, partition: PartitionName) -> None:
    """Over every kind of connection: a producer's, with a transaction, a consumer's, and those of a group's member."""
    topic, wanted = partition.topic, [b"%d" % number for number in range(COUNT)]
    async with Producer(cluster, ProducerOptions(transactional_id=topic)) as producer:
        await producer.begin()
        for value in wanted:
            await producer.send(topic, value, partition=0)
        await producer.commit()
    values: list[bytes | None] = []
    async with Consumer(cluster) as consumer:
        consumer.assign({partition: 0})
        while len(values) < COUNT:
            values += [one.value for one in await consumer.poll()]
    assert values == wanted
    values = []
    async with GroupConsumer(cluster, topic, [topic], GroupOptions(protocol="consumer")) as member:
        while len(values) < COUNT:
            values += [one.value for one in await member.poll()]
    assert values == wanted


@EVERY_MECHANISM
def test_sasl(kafka: Addresses, partition: PartitionName, mechanism: Mechanism) -> None:
    address = kafka["SASL_PLAINTEXT"]
    with_cluster(address, lambda cluster: write_and_read(cluster, partition), sasl=login(mechanism))
    cluster = Cluster(BlockingDriver(sasl=login(mechanism)), parse_addresses(address), LIMITS)
    assert run_blocking(offsets_at(cluster, {partition: LATEST}))[partition] > COUNT
    cluster.close()


def test_sasl_within_tls(kafka: Addresses, partition: PartitionName, authority: Authority) -> None:
    tls = TlsFiles(truststore=authority.truststore)
    work: Callable[[Cluster], Awaitable[None]] = lambda cluster: write_and_read(cluster, partition)  # noqa: E731
    with_cluster(kafka["SASL_SSL"], work, sasl=login("SCRAM-SHA-512"), tls=tls)


def test_mutual_tls(kafka: Addresses, partition: PartitionName, authority: Authority) -> None:
    tls = TlsFiles(truststore=authority.truststore, keystore=authority.keystore("client"))
    with_cluster(kafka["SSL"], lambda cluster: write_and_read(cluster, partition), sasl=None, tls=tls)


@EVERY_MECHANISM
def test_a_wrong_password(kafka: Addresses, partition: PartitionName, mechanism: Mechanism) -> None:
    """Every part of the client says why, at once and without the password."""
    address, topic = kafka["SASL_PLAINTEXT"], partition.topic
    refusals: list[ClientError] = []

    async def refused(call: Awaitable[object]) -> None:
        with pytest.raises(ClientError) as found:
            await call
        refusals.append(found.value)

    async def work(cluster: Cluster) -> None:
        await refused(cluster.refresh(None))
        await refused(offsets_at(cluster, {partition: LATEST}))
        async with Producer(cluster) as producer:
            with pytest.raises(NotWritten) as not_written:
                await (await producer.send(topic, b"v", partition=0))
            refusals.append(not_written.value)
        async with Consumer(cluster) as consumer:
            consumer.assign({partition: 0})
            await refused(consumer.poll(timeout_s=DEADLINE_S))
        async with GroupConsumer(cluster, "g", [topic]) as member:
            await refused(member.poll(timeout_s=DEADLINE_S))

    sasl = login(mechanism, "wr0ng-secret")
    with_cluster(address, work, sasl=sasl)
    cluster = Cluster(BlockingDriver(sasl=sasl), parse_addresses(address), LIMITS)
    with pytest.raises(SecurityRefused) as found:
        run_blocking(cluster.refresh(None))
    refusals.append(found.value)
    for one in refusals:
        assert f"{address} does not accept the user name and password: Authentication failed" in str(one)
        assert "wr0ng-secret" not in f"{one} {sasl}"


def test_an_unknown_user(kafka: Addresses) -> None:
    async def work(cluster: Cluster) -> None:
        with pytest.raises(SecurityRefused, match="does not accept the user name and password"):
            await cluster.refresh(None)

    for mechanism in MECHANISMS:
        with_cluster(kafka["SASL_PLAINTEXT"], work, sasl=replace(login(mechanism), username="bob"))


def test_a_login_where_none_is_wanted(kafka: Addresses) -> None:
    async def work(cluster: Cluster) -> None:
        with pytest.raises(SecurityRefused, match="does not offer SASL"):
            await cluster.refresh(None)

    with Broker() as broker:
        for address in (kafka["PLAINTEXT"], broker.bootstrap):
            with_cluster(address, work, sasl=login("PLAIN"))


@EVERY_MECHANISM
def test_the_command_line(kafka: Addresses, authority: Authority, tmp_path: Path, mechanism: Mechanism) -> None:
    file, topic = tmp_path / "client.properties", f"t-{mechanism}"
    settings = (
        f"security.protocol=SASL_SSL\nssl.truststore.location={authority.truststore}\nsasl.mechanism={mechanism}\n"
    )
    file.write_text(f"{settings}sasl.jaas.config={jaas(mechanism)}\n")

    def run(*words: str, stdin: str = "") -> Ran:
        return run_tailrace(*words, "--client-config", str(file), stdin=stdin, bootstrap=kafka["SASL_SSL"])

    assert run("topic", "create", topic).code == 0
    assert run("produce", topic, stdin="one\n").code == 0
    assert run("consume", topic, "--from-beginning", "--max", "1").out == "one\n"
    assert run("transaction", "list").code == 0
    assert run("cluster", "status").code == 0
    file.write_text(f"{settings}sasl.jaas.config={jaas(mechanism, 'wr0ng-secret')}\n")
    for command in (("topic", "list"), ("consume", topic), ("transaction", "list"), ("cluster", "status")):
        ran = run(*command)
        assert (ran.code, ran.out) == (1, "")
        assert "does not accept the user name and password: Authentication failed" in ran.err
        assert "wr0ng-secret" not in ran.err
