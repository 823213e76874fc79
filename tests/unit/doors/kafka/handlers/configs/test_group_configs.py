"""Settings of groups (resource type 32): described, altered, refused, listed; and how they affect members."""

import asyncio

from tailrace.wire.errors import Error
from tailrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.unit.doors.kafka.consumers import Consumer
from tests.unit.doors.kafka.grouped import SETTINGS
from tests.unit.doors.kafka.handlers.configs.test_configs import ASSIGN, CLEAR, change, replace_all, shown
from tests.unit.doors.kafka.served import Served, with_broker

GROUP_KIND = 32
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@with_broker(**SETTINGS)
async def test_members_are_told_by_their_groups_own_settings(served: Served) -> None:
    await served.make_topic("t")
    assert (await change(served, GROUP_KIND, "g", (INTERVAL, ASSIGN, "1234"))).error_code == 0
    assert (await Consumer(served, "one", "t").join()).heartbeat_interval_ms == 1234
    assert (await Consumer(served, "one", "t", group="h").join()).heartbeat_interval_ms == 5000
    described = await shown(served, GROUP_KIND, "g")
    values = {name: (one.value, one.config_source) for name, one in described.items()}
    assert {name: value for name, value in values.items() if name.startswith("consumer.")} == {
        SESSION: ("45000", 5),
        INTERVAL: ("1234", 8),
    }
    listed = (await served.call(ListConfigResourcesRequest(resource_types=(GROUP_KIND,)), 1)).config_resources
    assert [one.resource_name for one in listed] == ["g"]
    assert (await change(served, GROUP_KIND, "g", (INTERVAL, CLEAR, None))).error_code == 0
    assert (await shown(served, GROUP_KIND, "g"))[INTERVAL].value == "5000"
    assert (await served.call(ListConfigResourcesRequest(resource_types=(GROUP_KIND,)), 1)).config_resources == ()


@with_broker(**SETTINGS)
async def test_a_session_ends_when_the_group_says(served: Served) -> None:
    await served.make_topic("t")
    assert (await replace_all(served, GROUP_KIND, "g", (SESSION, "300"), (INTERVAL, "100"))).error_code == 0
    one, two = Consumer(served, "one", "t"), Consumer(served, "two", "t")
    await one.join()
    await two.join()
    async with asyncio.timeout(10):
        while two.partitions != [0]:  # it is heard of until the other, which is not, is out
            assert (await two.beat()).error_code == 0


@with_broker(**SETTINGS, group_share_delivery_count_limit=7)
async def test_settings_of_share_groups(served: Served) -> None:
    changes = (("share.auto.offset.reset", ASSIGN, "earliest"), ("share.retry.backoff.multiplier", ASSIGN, "1.5"))
    assert (await change(served, GROUP_KIND, "g", *changes)).error_code == 0
    described = await shown(served, GROUP_KIND, "g")
    values = {name: (one.value, one.config_source) for name, one in described.items()}
    assert {name: value for name, value in values.items() if not name.startswith("consumer.")} == {
        "share.session.timeout.ms": ("45000", 5),
        "share.heartbeat.interval.ms": ("5000", 5),
        "share.record.lock.duration.ms": ("30000", 5),
        "share.delivery.count.limit": ("7", 4),
        "share.partition.max.record.locks": ("2000", 5),
        "share.auto.offset.reset": ("earliest", 8),
        "share.isolation.level": ("read_uncommitted", 5),
        "share.renew.acknowledge.enable": ("true", 5),
        "share.retry.backoff.ms": ("0", 5),
        "share.retry.backoff.max.ms": ("60000", 5),
        "share.retry.backoff.multiplier": ("1.5", 8),
        "errors.deadletterqueue.topic.name": ("", 5),
        "errors.deadletterqueue.copy.record.enable": ("true", 5),
    }


@with_broker(**SETTINGS)
async def test_what_is_refused(served: Served) -> None:
    for name, group, value, error in (
        ("retention.ms", "g", "1", Error.INVALID_CONFIG),
        (INTERVAL, "g", "soon", Error.INVALID_CONFIG),
        (INTERVAL, "g", "0", Error.INVALID_CONFIG),
        (INTERVAL, "g", "45000", Error.INVALID_CONFIG),  # as long as a session
        (SESSION, "g", "5000", Error.INVALID_CONFIG),  # as short as a heartbeat
        ("share.delivery.count.limit", "g", "1", Error.INVALID_CONFIG),
        ("share.auto.offset.reset", "g", "none", Error.INVALID_CONFIG),
        ("share.heartbeat.interval.ms", "g", "45000", Error.INVALID_CONFIG),
        (INTERVAL, "", "1", Error.INVALID_REQUEST),
    ):
        assert (await change(served, GROUP_KIND, group, (name, ASSIGN, value))).error_code == error, (name, value)
    assert (await shown(served, GROUP_KIND, "g"))[INTERVAL].value == "5000"
