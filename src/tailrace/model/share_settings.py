"""The settings of one share group as values: its own, and the broker's defaults for the rest."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tailrace.model import group_settings
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import BY_DURATION, GROUP_SETTINGS, duration_ms, parsed
from tailrace.model.settings import Settings, rows


class OffsetReset(NamedTuple):
    """Where a group starts to read a partition that is new to it."""

    to: Literal["latest", "earliest", "by_duration"]
    duration_ms: int = 0  # by_duration: start at the first record that is not older than this

    @classmethod
    def of(cls, text: str) -> "OffsetReset":
        if text.startswith(BY_DURATION):
            return cls("by_duration", duration_ms(text.removeprefix(BY_DURATION)) or 0)
        return cls("earliest" if text == "earliest" else "latest")


@frozen
class ShareSettings:
    record_lock_duration_ms: int
    delivery_count_limit: int
    partition_max_record_locks: int
    offset_reset: OffsetReset
    read_committed: bool
    may_renew: bool
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    retry_backoff_multiplier: float
    dead_letter_topic: str  # empty: there are no dead letters
    copies_dead_letters: bool

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Settings) -> "ShareSettings":
        """`own` are the group's own settings, already checked."""

        def value(name: str) -> Any:
            setting = GROUP_SETTINGS[name]
            if name in own:
                return parsed(name, own[name])
            return setting.default if setting.broker is None else getattr(broker, rows()[setting.broker].name)

        return cls(
            record_lock_duration_ms=value(group_settings.SHARE_LOCK_DURATION),
            delivery_count_limit=value(group_settings.SHARE_DELIVERY_LIMIT),
            partition_max_record_locks=value(group_settings.SHARE_MAX_LOCKS),
            offset_reset=OffsetReset.of(value(group_settings.SHARE_OFFSET_RESET)),
            read_committed=value(group_settings.SHARE_ISOLATION) == "read_committed",
            may_renew=value(group_settings.SHARE_RENEW),
            retry_backoff_ms=value(group_settings.SHARE_BACKOFF),
            retry_backoff_max_ms=value(group_settings.SHARE_BACKOFF_MAX),
            retry_backoff_multiplier=value(group_settings.SHARE_BACKOFF_MULTIPLIER),
            dead_letter_topic=value(group_settings.DEAD_LETTER_TOPIC),
            copies_dead_letters=value(group_settings.DEAD_LETTER_COPY),
        )
