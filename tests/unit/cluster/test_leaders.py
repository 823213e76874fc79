"""Leaders report themselves: reports may be late, repeated, or about deleted topics."""

from tailrace.cluster.image import PartitionPlace
from tailrace.cluster.records import PartitionLed
from tailrace.model.ids import NO_BROKER, NO_EPOCH, Id
from tests.unit.cluster.cluster import Cluster, disk_of, numbered


def led(topic: Id, leader: int, epoch: int, *in_sync: int, partition: int = 0) -> PartitionLed:
    return PartitionLed(topic_id=topic, partition=partition, leader=leader, epoch=epoch, in_sync=in_sync)


def report(cluster: Cluster, *reports: PartitionLed) -> int:
    """Report leaders; the number of records written."""
    before = len(cluster.log)
    cluster.write(lambda controller: controller.report_leaders(reports))
    assert cluster.replayed().image == cluster.image
    return len(cluster.log) - before


def seen(place: PartitionPlace) -> tuple[int, int, tuple[int, ...]]:
    return place.leader, place.epoch, place.in_sync


def test_a_report_is_what_metadata_says() -> None:
    cluster = Cluster(1, 2, 3)
    topic = cluster.create("t", 2, 3)
    first, second = cluster.image.topics["t"].partitions
    assert seen(first) == (NO_BROKER, NO_EPOCH, ())
    assert report(cluster, led(topic, 2, 4, 1, 2, 3), led(topic, 3, 1, 3, partition=1)) == 2
    assert (seen(first), seen(second)) == ((2, 4, (1, 2, 3)), (3, 1, (3,)))


def test_in_one_epoch_only_those_in_sync_change() -> None:
    cluster = Cluster(1, 2, 3)
    topic = cluster.create("t", 1, 3)
    place = cluster.image.topics["t"].partitions[0]
    report(cluster, led(topic, 2, 4, 1, 2, 3))
    assert report(cluster, led(topic, 2, 4, 2, 3)) == 1
    assert seen(place) == (2, 4, (2, 3))
    assert report(cluster, led(topic, 2, 4, 2, 3), led(topic, 3, 4, 1, 2, 3)) == 0, (
        "a repeated report, and another leader in the same epoch"
    )
    assert seen(place) == (2, 4, (2, 3))


def test_news_of_an_older_epoch_is_none() -> None:
    cluster = Cluster(1, 2, 3)
    topic = cluster.create("t", 1, 3)
    place = cluster.image.topics["t"].partitions[0]
    report(cluster, led(topic, 2, 4, 2))
    assert report(cluster, led(topic, 1, 3, 1, 2, 3)) == 0
    assert report(cluster, led(topic, 1, 6, 1), led(topic, 3, 5, 3)) == 2, "both were new when they were proposed"
    assert seen(place) == (1, 6, (1,)), "in any order of replay"


def test_reports_for_what_is_not_there_are_dropped() -> None:
    cluster = Cluster(1, 2, 3)
    topic = cluster.create("t")
    assert report(cluster, *(led(topic, 1, 1, 1, partition=number) for number in (-1, 1))) == 0
    cluster.write(lambda controller: controller.delete_topic("t"))
    cluster.create("t")
    assert report(cluster, led(topic, 1, 9, 1), led(numbered(77), 1, 9, 1)) == 0
    cluster.image.replay(led(topic, 1, 9, 1))
    assert cluster.image.topics["t"].partitions[0].epoch == NO_EPOCH, "a recreated topic has another id"


def test_replicas_are_known_with_their_disks() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create("t", 5, 2)
    for place in cluster.image.topics["t"].partitions:
        assert place.directories == tuple(disk_of(broker) for broker in place.replicas)
