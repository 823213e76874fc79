"""Data directories of 0.1.0 load in the tree at hand, whole, and until the raise the other way round."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tailrace.broker.metadata.may_not_vote import MayNotVote
from tailrace.log.recovery import damage_mark, refill
from tailrace.log.recovery.truncation import store_mark
from tailrace.log.state.voters import write_voters
from tailrace.model import ids
from tailrace.ports import system_ports
from tailrace.testing import Broker
from tests.unit.cli.program import run_tailrace
from tests.unit.log.logs import write_gap
from tests.upgrade.load import PATIENCE_S, PATIENT, committed_offsets, consumer, keys_of
from tests.upgrade.releases import OLD_PROGRAM, make_new, make_old, run_old

PLAIN: Final = "plain"
TRANSACTED: Final = "transacted"
PARTITIONS: Final = 2
TIMEOUT_S: Final = 30.0
SETTINGS: Final = {"segment.bytes": "20000", "index.interval.bytes": "1000", "retention.ms": "123456789"}
SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".producers", "leader-epochs", "votes", "checkpoint")


class Facts(NamedTuple):
    """What clients find on a broker."""

    topics: list[str]
    starts: list[int]  # where partitions begin; a leader may write a batch of its own at the end after a crash
    plain: list[list[bytes]]
    transacted: list[list[bytes]]
    settings: dict[str, str]
    committed: list[list[int]]


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def fill(broker: Broker) -> None:
    """Everything that leaves a file, or a record of the broker's own, behind."""
    admin = admin_of(broker)
    topics = [NewTopic(name, PARTITIONS, 1, config=SETTINGS) for name in (PLAIN, TRANSACTED, "gone")]
    for made in admin.create_topics(topics).values():
        made.result(TIMEOUT_S)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 2, **PATIENT}
        )
        for number in range(200):
            key = f"{codec}-{number}"
            producer.produce(PLAIN, b"v" * 300, key, partition=number % PARTITIONS)
        assert producer.flush(TIMEOUT_S) == 0
    transact(broker, "ends", open_at_last=False)
    transact(broker, "stays open", open_at_last=True)
    admin.delete_records([TopicPartition(PLAIN, 0, 100)])[TopicPartition(PLAIN, 0)].result(TIMEOUT_S)
    admin.delete_topics(["gone"])["gone"].result(TIMEOUT_S)
    commit(broker)


def transact(broker: Broker, name: str, *, open_at_last: bool) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name, **PATIENT}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(TIMEOUT_S)
    for number in range(30):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(TRANSACTED, b"v" * 500, f"{name}-{number}", partition=partition)
        if open_at_last and number == 29:
            assert producer.flush(TIMEOUT_S) == 0
        elif number % 3:
            producer.commit_transaction(TIMEOUT_S)
        else:
            assert producer.flush(TIMEOUT_S) == 0  # otherwise it aborts what it has not sent
            producer.abort_transaction(TIMEOUT_S)


def commit(broker: Broker) -> None:
    """Offsets of a group of each protocol; the members of one leave, the other's stay in the group's state."""
    for group in ("classic", "consumer"):
        member = consumer(broker.bootstrap, group, "classic" if group == "classic" else "consumer")
        member.subscribe([PLAIN])
        got = 0
        while got < 500:
            got += len([one for one in member.consume(500, 1.0) if one.error() is None])
        member.commit(asynchronous=False)
        member.close()


def facts_of(broker: Broker) -> Facts:
    admin, bootstrap = admin_of(broker), broker.bootstrap
    resource = ConfigResource(ConfigResource.Type.TOPIC, PLAIN)
    described = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return Facts(
        topics=sorted(admin.list_topics(timeout=TIMEOUT_S).topics),
        starts=starts_of(bootstrap),
        plain=keys_of(bootstrap, PLAIN, PARTITIONS),
        transacted=keys_of(bootstrap, TRANSACTED, PARTITIONS),
        settings={name: described[name].value for name in SETTINGS},
        committed=[committed_offsets(bootstrap, PLAIN, group, PARTITIONS) for group in ("classic", "consumer")],
    )


def starts_of(bootstrap: str) -> list[int]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "starts", **PATIENT})
    try:
        return [
            reader.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S)[0]
            for topic in (PLAIN, TRANSACTED)
            for number in range(PARTITIONS)
        ]
    finally:
        reader.close()


@pytest.mark.long
@pytest.mark.parametrize("end", [Broker.stop, Broker.kill], ids=["stopped", "killed"])
def test_a_data_directory_goes_from_release_to_release(
    old_source: Path, tmp_path: Path, end: Callable[[Broker], None]
) -> None:
    broker = Broker(data_dir=tmp_path / "data")
    make_old(old_source, broker)
    try:
        broker.start()
        fill(broker)
        before = facts_of(broker)
        assert before.starts == [100, 0, 0, 0]
        end(broker)
        found = [path.name for path in (tmp_path / "data").rglob("*")]
        missing = [one for one in SUFFIXES if not any(name.endswith(one) for name in found)]
        assert missing == [] or end is Broker.kill, "a clean stop leaves files of every kind"
        make_new(broker)
        broker.start()
        assert facts_of(broker) == before
        end(broker)
        make_old(old_source, broker)
        broker.start()
        assert facts_of(broker) == before
        end(broker)
        make_new(broker)
        broker.start()
        assert run_tailrace("cluster", "upgrade", "--yes", bootstrap=broker.bootstrap).code == 0
        end(broker)
        broker.start()
        assert facts_of(broker) == before
        assert_open_transaction_is_aborted(broker)
    finally:
        broker.close()


def assert_open_transaction_is_aborted(broker: Broker) -> None:
    """Its coordinator knows it: a new producer of the same name ends it, and its markers reach the partitions."""
    before = keys_of(broker.bootstrap, TRANSACTED, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "stays open", **PATIENT})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(TRANSACTED, b"v", "at last", partition=partition)
    producer.commit_transaction(PATIENCE_S)
    assert keys_of(broker.bootstrap, TRANSACTED, PARTITIONS) == [[*keys, b"at last"] for keys in before]


def test_files_that_a_broker_writes_in_trouble_are_the_same_to_the_byte(old_source: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    run_old(old_source, OLD_PROGRAM, "marks", str(old))
    asyncio.run(write_marks(str(new)))
    written = {path.name: path.read_bytes() for path in new.iterdir()}
    assert {path.name: path.read_bytes() for path in old.iterdir()} == written
    assert len(written) == 6


async def write_marks(folder: str) -> None:
    disk = system_ports().disk
    voters = ((1, ids.Id(b"a" * 16)), (2, ids.Id(b"b" * 16)))
    write_gap(Path(folder), 5, 9)
    write_voters(disk, folder, 3, voters).close()
    await store_mark(disk, folder, 7)
    await damage_mark.mark(disk, folder, 8)
    await refill._mark(disk, folder, "filling", voters)
    may_not_vote = MayNotVote(disk, folder)
    may_not_vote.add(ids.TopicPartition(ids.Id(b"t" * 16), 4))
    await may_not_vote.store()
