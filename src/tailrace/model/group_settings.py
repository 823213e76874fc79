"""Settings that a group may have of its own: of consumer groups (`consumer.*`) and of share groups (`share.*`).

Most override a broker setting, with the same bounds. Those of share groups about retries and dead letters have no
broker setting. A group's settings may be set before the group exists. `share_settings` has them as values.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tailrace.model.faults import Fault, InvalidSetting
from tailrace.model.frozen import frozen
from tailrace.model.setting_rows import Row, between, one_of
from tailrace.model.settings import DAY_MS, SettingError, check, kind_of, parse, row, rows
from tailrace.model.topics import check_topic_name

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
SHARE_SESSION_TIMEOUT: Final = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
SHARE_LOCK_DURATION: Final = "share.record.lock.duration.ms"
SHARE_DELIVERY_LIMIT: Final = "share.delivery.count.limit"
SHARE_MAX_LOCKS: Final = "share.partition.max.record.locks"
SHARE_OFFSET_RESET: Final = "share.auto.offset.reset"
SHARE_ISOLATION: Final = "share.isolation.level"
SHARE_RENEW: Final = "share.renew.acknowledge.enable"
SHARE_BACKOFF: Final = "share.retry.backoff.ms"
SHARE_BACKOFF_MAX: Final = "share.retry.backoff.max.ms"
SHARE_BACKOFF_MULTIPLIER: Final = "share.retry.backoff.multiplier"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPY: Final = "errors.deadletterqueue.copy.record.enable"

BY_DURATION: Final = "by_duration:"
DURATION: Final = re.compile(
    r"P(?:([0-9]{1,9})D)?(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.[0-9]*)?S)?)?"
)
BACKOFF_MAX_MS: Final = 7 * DAY_MS


@frozen
class GroupSetting:
    """One setting of groups. `broker` is the broker setting that it overrides; None: there is none."""

    kind: type
    default: Any
    row: Row
    broker: str | None


def _overriding(name: str) -> GroupSetting:
    one = rows()[f"group.{name}"]
    theirs = row(one)
    mine = Row(name, theirs.help, None, theirs.check, theirs.wants)
    return GroupSetting(kind=kind_of(one), default=one.default, row=mine, broker=theirs.name)


def _own(
    name: str, default: object, help: str, check: Callable[[Any], bool] | None = None, wants: str = ""
) -> GroupSetting:
    return GroupSetting(kind=type(default), default=default, row=Row(name, help, None, check, wants), broker=None)


def duration_ms(text: str) -> int | None:
    """A duration in Java's form, such as P1DT2H30M; None: it is not one."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000


def _is_reset(text: str) -> bool:
    is_duration = text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) is not None
    return text in ("latest", "earliest") or is_duration


def _is_dead_letter_topic(text: str) -> bool:
    if not text:
        return True
    try:
        check_topic_name(text)
    except Fault:
        return False
    return not text.startswith("__")


_TABLE: Final = (
    _overriding(SESSION_TIMEOUT),
    _overriding(HEARTBEAT_INTERVAL),
    _overriding(SHARE_SESSION_TIMEOUT),
    _overriding(SHARE_HEARTBEAT_INTERVAL),
    _overriding(SHARE_LOCK_DURATION),
    _overriding(SHARE_DELIVERY_LIMIT),
    _overriding(SHARE_MAX_LOCKS),
    _own(
        SHARE_OFFSET_RESET,
        "latest",
        "Where a share group starts to read a topic that is new to it.",
        _is_reset,
        "latest, earliest or by_duration:PnDTnHnMnS",
    ),
    _own(
        SHARE_ISOLATION,
        "read_uncommitted",
        "Whether members of a share group get records of transactions that are open or aborted.",
        **one_of("read_uncommitted", "read_committed"),
    ),
    _own(SHARE_RENEW, True, "Whether members of a share group may renew the locks of records."),
    _own(
        SHARE_BACKOFF,
        0,
        "How long a record that was released, or whose lock ended, is held back before it is delivered again.",
        **between(0, BACKOFF_MAX_MS),
    ),
    _own(SHARE_BACKOFF_MAX, 60_000, "The longest time that a record is held back.", **between(0, BACKOFF_MAX_MS)),
    _own(
        SHARE_BACKOFF_MULTIPLIER,
        2.0,
        "By how much the time that a record is held back grows with each delivery.",
        lambda value: 1 <= value <= 100,
        "from 1 to 100",
    ),
    _own(
        DEAD_LETTER_TOPIC,
        "",
        "The topic for records that a share group rejects or fails to process; empty: such records are dropped.",
        _is_dead_letter_topic,
        "the name of a topic that is not internal, or empty",
    ),
    _own(
        DEAD_LETTER_COPY,
        True,
        "Whether dead letters have the key, value and headers of the record, and not only say where it was.",
    ),
)
GROUP_SETTINGS: Final = MappingProxyType({one.row.name: one for one in _TABLE})


def parsed(name: str, text: str) -> Any:
    """The value of a setting; raises `SettingError`."""
    setting = GROUP_SETTINGS[name]
    value = parse(name, setting.kind, text)
    check(setting.row, value)
    return value


def check_group_setting(name: str, value: str) -> None:
    if name not in GROUP_SETTINGS:
        raise InvalidSetting(f"Unknown group config name: {name}; supported are {', '.join(GROUP_SETTINGS)}")
    try:
        parsed(name, value)
    except SettingError as error:
        raise InvalidSetting(str(error)) from None


def check_group(own: Mapping[str, str]) -> None:
    """A member whose heartbeat interval is not below its session timeout would be removed again and again."""
    values = {name: parsed(name, own[name]) if name in own else one.default for name, one in GROUP_SETTINGS.items()}
    for beat, session in ((HEARTBEAT_INTERVAL, SESSION_TIMEOUT), (SHARE_HEARTBEAT_INTERVAL, SHARE_SESSION_TIMEOUT)):
        if values[beat] >= values[session]:
            raise InvalidSetting(f"{beat}={values[beat]} must be less than {session}={values[session]}")
    if values[SHARE_BACKOFF] > values[SHARE_BACKOFF_MAX]:
        raise InvalidSetting(
            f"{SHARE_BACKOFF}={values[SHARE_BACKOFF]} must be at most {SHARE_BACKOFF_MAX}={values[SHARE_BACKOFF_MAX]}"
        )
