"""One broker for each worker, one instance of each client on it, a topic of its own for each test."""

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.fetched import Missing
from tests.interop.client import DEADLINE_S, Client
from tests.interop.drivers import DRIVERS
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import named
from tests.interop.ledger import Entry
from tests.interop.share_groups import BROKERS, apache_kafka, serving


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "feature(sentence): a line of the interop ledger")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each feature's ledger entry on its reports, before anything is deselected."""
    features = [item for item in items if item.get_closest_marker("feature") is not None]
    versions = {driver.name: driver.version() for driver in DRIVERS}
    entries = [_entry(item, versions, order) for order, item in enumerate(features)]
    sizes = Counter(entry.long for entry in entries)
    for item, entry in zip(features, entries, strict=True):
        item.user_properties.append(("interop", replace(entry, of=sizes[entry.long]).properties()))


def _entry(item: pytest.Item, versions: dict[str, str | None], order: int) -> Entry:
    assert isinstance(item, pytest.Function)
    marker = item.get_closest_marker("feature")
    assert marker is not None
    parameters = {name: named(value) for name, value in item.callspec.params.items()}
    driver = item.callspec.params["client"]
    assert isinstance(driver, type)
    assert issubclass(driver, Client)
    return Entry(
        area=item.path.stem.removeprefix("test_").replace("_", " ").capitalize(),
        feature=str(marker.args[0]).format(**parameters),
        client=driver.name,
        version=versions[driver.name],
        column=DRIVERS.index(driver),
        order=order,
        of=0,
        long=item.get_closest_marker("long") is not None,
    )


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The broker that `TAILRACE_INTEROP_BOOTSTRAP` names, or one of ours."""
    other = os.environ.get("TAILRACE_INTEROP_BOOTSTRAP")
    if other is not None:
        yield other
        return
    from tailrace.testing import Broker

    with Broker(group_consumer_session_timeout_ms=12_000) as broker:  # a client in Java needs seconds to start again
        yield broker.bootstrap


# Sessions of the consumer protocol as short as those of classic members, so that a killed member is missed soon.
QUICK_GROUPS = {"group.consumer.session.timeout.ms": 6000, "group.consumer.heartbeat.interval.ms": 500}
KAFKA_MINIMA = {"group.consumer.min.session.timeout.ms": 6000, "group.consumer.min.heartbeat.interval.ms": 500}


@pytest.fixture(scope="module", params=["tailrace", pytest.param("Apache Kafka", marks=pytest.mark.long)])
def each_bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of ours, then one of Apache Kafka: for tests of our own client."""
    if request.param == "tailrace":
        from tailrace.testing import Broker

        settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in QUICK_GROUPS.items()}
        with Broker(**settings) as broker:
            yield broker.bootstrap
        return
    more = "".join(f"{name}={value}\n" for name, value in (QUICK_GROUPS | KAFKA_MINIMA).items())
    with apache_kafka(tmp_path_factory.mktemp("kafka"), more) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def clients(bootstrap: str) -> Iterator[Callable[[type[Client]], Client]]:
    yield from clients_of(bootstrap)


def clients_of(bootstrap: str) -> Iterator[Callable[[type[Client]], Client]]:
    """Each client once, started when it is first wanted; a missing one skips the test."""
    started: dict[type[Client], Client] = {}

    def client_of(driver: type[Client]) -> Client:
        if driver.version() is None:
            pytest.skip(driver.why_missing())
        if driver not in started:
            try:
                started[driver] = driver(bootstrap)
            except Missing as missing:
                pytest.skip(str(missing))
        return started[driver]

    yield client_of
    for client in started.values():
        client.close()


@pytest.fixture
def client(request: pytest.FixtureRequest, clients: Callable[[type[Client]], Client]) -> Client:
    return clients(request.param)


@pytest.fixture
def other(request: pytest.FixtureRequest, clients: Callable[[type[Client]], Client]) -> Client:
    """A second client, the one that wrote."""
    return clients(request.param)


@pytest.fixture
def bench(clients: Callable[[type[Client]], Client]) -> Client:
    """The client that lays out and inspects what a test is about, when the client under test is not to."""
    return clients(Confluent)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic name that nobody else uses."""
    return f"{request.function.__name__}-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    """A topic with one partition."""
    bench.create_topic(name)
    eventually(lambda: name in bench.list_topics())
    return name


def eventually(condition: Callable[[], bool]) -> None:
    """A broker may tell a little later what it has accepted."""
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, f"not so after {DEADLINE_S} s"
        time.sleep(0.01)


@pytest.fixture(scope="session", params=BROKERS)
def sharing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with share groups."""
    with serving(request.param, tmp_path_factory.mktemp("sharing")) as address:
        yield address
