"""The share groups of a run: their settings, which are set before their members join."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tailrace.model import group_settings
from tailrace.model.frozen import frozen
from tailrace.queues.rules import ShareRules
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)

ALTER_VERSION: Final = 1
GROUP_RESOURCE: Final = 32
DEAD_LETTER_TOPIC: Final = "dead"
RETRY_SECONDS: Final = 0.2
COMMON: Final = ShareRules(lock_ms=1_000, locks_max=100, delivery_limit=5)


@frozen
class ShareGroup:
    name: str
    rules: ShareRules
    committed: bool = False  # its isolation level is read_committed
    exact: bool = False  # members ask for an exact number of records
    poison_every: int = 0  # each record whose offset is a multiple of this crashes its members; 0: none does

    @property
    def settings(self) -> Mapping[str, str]:
        rules = self.rules
        return {
            group_settings.SHARE_OFFSET_RESET: "earliest",
            group_settings.SHARE_ISOLATION: "read_committed" if self.committed else "read_uncommitted",
            group_settings.SHARE_LOCK_DURATION: str(rules.lock_ms),
            group_settings.SHARE_DELIVERY_LIMIT: str(rules.delivery_limit),
            group_settings.SHARE_MAX_LOCKS: str(rules.locks_max),
            group_settings.SHARE_BACKOFF: str(rules.backoff_ms),
            group_settings.SHARE_BACKOFF_MAX: str(rules.backoff_max_ms),
            group_settings.DEAD_LETTER_TOPIC: DEAD_LETTER_TOPIC if rules.dead_letters else "",
        }


GROUPS: Final = (
    ShareGroup(name="s-plain", rules=COMMON),
    ShareGroup(name="s-rest", rules=replace(COMMON, backoff_ms=300, backoff_max_ms=900), committed=True, exact=True),
    ShareGroup(name="s-dead", rules=replace(COMMON, delivery_limit=3, dead_letters=True), poison_every=41),
)


async def configure(router: Router, group: ShareGroup) -> None:
    changes = tuple(ConfigChange(name=name, config_operation=0, value=value) for name, value in group.settings.items())
    resource = ResourceToAlter(resource_type=GROUP_RESOURCE, resource_name=group.name, configs=changes)
    while True:
        answer = await router.call_any(IncrementalAlterConfigsRequest(resources=(resource,)), ALTER_VERSION)
        if answer is not None and answer.resources[0].error_code == 0:
            return
        await asyncio.sleep(RETRY_SECONDS)
