"""Changes of settings, as confluent-kafka's administrator takes them."""

from collections.abc import Mapping

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType


def changed(kind: ResourceType, name: str, changes: Mapping[str, str | None]) -> ConfigResource:
    """None goes back to the default."""
    entries = [
        ConfigEntry(
            setting,
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for setting, value in changes.items()
    ]
    return ConfigResource(kind, name, incremental_configs=entries)
