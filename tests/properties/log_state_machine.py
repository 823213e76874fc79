"""A Hypothesis state machine that owns a log on a real disk: it opens, runs and removes it, on its own event loop."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from tailrace.log.log import Log, RecoveryPoint
from tailrace.model.topics import TopicSettings
from tailrace.ports.clock import SystemClock
from tests.unit.log.logs import NOW, open_log, trouble

T = TypeVar("T")
STEP_MAX_SECONDS = 20


class ModelClock(SystemClock):
    """The time at which the model appends: by the real clock, its producers would have expired years ago."""

    def wall_ms(self) -> int:
        return NOW


class LogStateMachine(RuleBasedStateMachine):
    def __init__(self, topic_settings: TopicSettings) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.disk, ports = trouble()
        self.ports = replace(ports, clock=ModelClock())
        self.topic_settings = topic_settings
        self.point: RecoveryPoint | None = None
        self.log = self.run(self.opened(clean=False))

    def run(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(STEP_MAX_SECONDS):
                return await work

        return self.loop.run_until_complete(bounded())

    async def opened(self, *, clean: bool) -> Log:
        folder = self.folder / "p"
        return await open_log(folder, settings=self.topic_settings, recovery=self.point, clean=clean, ports=self.ports)

    def teardown(self) -> None:
        self.run(self.log.close())
        self.loop.close()
        self.ports.offload.close()
        shutil.rmtree(self.folder)
