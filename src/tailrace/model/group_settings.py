"""Settings that a consumer group may have of its own: each takes the place of the broker's, and has its bounds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailrace.model.faults import InvalidSetting
from tailrace.model.settings import SettingError, check, kind_of, parse, row, rows

session_timeout: Final = "consumer.session.timeout.ms"
heartbeat_interval: Final = "consumer.heartbeat.interval.ms"
broker_names: Final = MappingProxyType({name: f"group.{name}" for name in (session_timeout, heartbeat_interval)})


def check_group_setting(name: str, value: str) -> None:
    if name not in broker_names:
        raise InvalidSetting(f"there is no setting {name} of groups, only {', '.join(broker_names)}")
    one = rows()[broker_names[name]]
    try:
        check(row(one), parse(name, kind_of(one), value))
    except SettingError as error:
        raise InvalidSetting(str(error)) from None


def check_group(own: Mapping[str, str]) -> None:
    """Whoever is heard of less often than its session lasts would be out, again and again."""
    session_ms, beat_ms = (int(own.get(one, str(rows()[broker_names[one]].default))) for one in broker_names)
    if beat_ms >= session_ms:
        raise InvalidSetting(f"{heartbeat_interval}={beat_ms} must be less than {session_timeout}={session_ms}")
