"""Settings that a consumer group may have of its own. Each overrides a broker setting, with the same bounds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailrace.model.faults import InvalidSetting
from tailrace.model.settings import SettingError, check, kind_of, parse, row, rows

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
BROKER_NAMES: Final = MappingProxyType({name: f"group.{name}" for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL)})


def check_group_setting(name: str, value: str) -> None:
    if name not in BROKER_NAMES:
        raise InvalidSetting(f"Unknown group config name: {name}; supported are {', '.join(BROKER_NAMES)}")
    one = rows()[BROKER_NAMES[name]]
    try:
        check(row(one), parse(name, kind_of(one), value))
    except SettingError as error:
        raise InvalidSetting(str(error)) from None


def check_group(own: Mapping[str, str]) -> None:
    """A member whose heartbeat interval is not below its session timeout would be removed again and again."""
    session_ms, beat_ms = (int(own.get(one, str(rows()[BROKER_NAMES[one]].default))) for one in BROKER_NAMES)
    if beat_ms >= session_ms:
        raise InvalidSetting(f"{HEARTBEAT_INTERVAL}={beat_ms} must be less than {SESSION_TIMEOUT}={session_ms}")
