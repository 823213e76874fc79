"""The settings of share groups: bounds, relations, and the values in force."""

from pathlib import Path

import pytest

from tailrace.model.faults import InvalidSetting
from tailrace.model.group_settings import GROUP_SETTINGS, check_group, check_group_setting, duration_ms
from tailrace.model.settings import SettingError, Settings
from tailrace.model.share_settings import OffsetReset, ShareSettings
from tailrace.model.topics import text_of

PAGE = Path(__file__).parents[3] / "docs" / "groups.md"


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("share.session.timeout.ms", ("1", "45000"), ("0", "soon", "")),
        ("share.heartbeat.interval.ms", ("1", "5000"), ("0",)),
        ("share.record.lock.duration.ms", ("1000", "3600000"), ("999", "3600001")),
        ("share.delivery.count.limit", ("0", "2", "25"), ("-1", "1", "26")),
        ("share.partition.max.record.locks", ("1", "10000"), ("0", "10001")),
        (
            "share.auto.offset.reset",
            ("latest", "earliest", "by_duration:PT1H", "by_duration:P2DT3H4M5.5S"),
            ("none", "by_duration:", "by_duration:1h", "by_duration:P", "by_duration:PT", "by_duration:PT-1S"),
        ),
        ("share.isolation.level", ("read_committed", "read_uncommitted"), ("serializable",)),
        ("share.renew.acknowledge.enable", ("true", "false"), ("yes",)),
        ("share.retry.backoff.ms", ("0", "604800000"), ("-1", "604800001")),
        ("share.retry.backoff.max.ms", ("0", "604800000"), ("-1",)),
        ("share.retry.backoff.multiplier", ("1", "2.5", "100"), ("0.5", "101", "nan", "twice")),
        ("errors.deadletterqueue.topic.name", ("", "dlq.orders"), ("__consumer_offsets", "a b", "..")),
        ("errors.deadletterqueue.copy.record.enable", ("true", "false"), ("1",)),
    ],
)
def test_bounds(name: str, allowed: tuple[str, ...], refused: tuple[str, ...]) -> None:
    for value in allowed:
        check_group_setting(name, value)
    for value in refused:
        with pytest.raises(InvalidSetting, match=name):
            check_group_setting(name, value)


def test_every_default_is_allowed_and_they_fit_together() -> None:
    for name, one in GROUP_SETTINGS.items():
        check_group_setting(name, str(one.default))
        assert one.row.help.endswith(".")
    check_group({})


def test_relations() -> None:
    check_group({"share.heartbeat.interval.ms": "1", "share.session.timeout.ms": "2"})
    for own in (
        {"share.heartbeat.interval.ms": "45000"},
        {"share.session.timeout.ms": "5000"},
        {"share.retry.backoff.ms": "60001"},
        {"share.retry.backoff.ms": "2", "share.retry.backoff.max.ms": "1"},
    ):
        with pytest.raises(InvalidSetting, match="must be"):
            check_group(own)
    with pytest.raises(SettingError, match=r"group\.share\.heartbeat"):
        Settings(group_share_heartbeat_interval_ms=45_000)


def test_durations() -> None:
    assert duration_ms("P1DT2H3M4S") == (((24 + 2) * 60 + 3) * 60 + 4) * 1000
    assert [duration_ms(text) for text in ("PT90M", "PT0S", "P", "")] == [5_400_000, 0, None, None]


def test_a_groups_own_values_then_the_brokers_then_the_defaults() -> None:
    broker = Settings(group_share_record_lock_duration_ms=2000, group_share_delivery_count_limit=7)
    found = ShareSettings.of(
        {
            "share.delivery.count.limit": "3",
            "share.auto.offset.reset": "by_duration:PT1M",
            "share.isolation.level": "read_committed",
            "share.retry.backoff.multiplier": "1.5",
            "errors.deadletterqueue.topic.name": "dlq",
        },
        broker,
    )
    assert found == ShareSettings(
        record_lock_duration_ms=2000,
        delivery_count_limit=3,
        partition_max_record_locks=2000,
        offset_reset=OffsetReset("by_duration", 60_000),
        read_committed=True,
        may_renew=True,
        retry_backoff_ms=0,
        retry_backoff_max_ms=60_000,
        retry_backoff_multiplier=1.5,
        dead_letter_topic="dlq",
        copies_dead_letters=True,
    )
    assert ShareSettings.of({}, broker).offset_reset == OffsetReset("latest")
    assert ShareSettings.of({"share.auto.offset.reset": "earliest"}, broker).offset_reset == OffsetReset("earliest")


def test_the_page_has_every_setting_with_its_default_and_bounds() -> None:
    page = PAGE.read_text()
    for name, one in GROUP_SETTINGS.items():
        if not name.startswith("consumer."):
            default = text_of(one.default)
            shown = f"`{default}`" if default else "empty"
            assert f"| `{name}` | {shown} | {one.row.wants or 'true or false'} | {one.row.help} |\n" in page
