"""The committed metadata: every broker, the controller too, applies the committed records of `__cluster_metadata`.

It reads this broker's own replica of the log up to the high watermark, and continues whenever that moves. A record of
a later release stops the broker (`LaterRelease`), and so does a feature level that it does not support.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.broker.later_release import check_level
from tailrace.broker.machines.runtime import codec_of, replay_batches
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.features import Features
from tailrace.cluster.records import RECORD_KINDS, FeatureRaised
from tailrace.model.faults import Fault

logger: Final = logging.getLogger(__name__)


class MetadataFollower:
    def __init__(self, partition: Partition, supported: Features) -> None:
        self._partition = partition
        self._supported = supported
        self.on_committed: Callable[[Sequence[object]], None] = _ignore
        self._decode = codec_of(RECORD_KINDS).decode
        self._moved = asyncio.Event()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self.applied = partition.log.start  # all records below are applied
        partition.watch(self._moved.set)

    async def catch_up(self) -> None:
        """Apply everything that is known to be committed now."""
        while self.applied < self._partition.high_watermark:
            records: list[Any] = []
            limit = self._partition.high_watermark
            self.applied = await replay_batches(self._partition, self.applied, limit, self._decode, records.append)
            for record in records:
                if isinstance(record, FeatureRaised):
                    check_level(self._supported, record.name, record.level)
            self.on_committed(records)
        waiting, self._waiting = self._waiting, []
        for condition, done in waiting:
            if not done.done():
                if condition():
                    done.set_result(None)
                else:
                    self._waiting.append((condition, done))

    async def follow(self) -> None:
        """Apply records whenever more are committed, until cancelled or a fault ends it."""
        while True:
            self._moved.clear()
            try:
                await self.catch_up()
            except Fault as fault:
                logger.critical("cannot read the metadata log, stopped following it: %s", fault)
                return
            await self._moved.wait()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the committed metadata fulfils a condition."""
        if not condition():
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((condition, done))
            await done


def _ignore(records: Sequence[object]) -> None:
    pass
