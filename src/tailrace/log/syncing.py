"""Group commit: one sync under way at a time, and whatever arrives meanwhile is covered by the next.

A round starts by noting the log's end and ends when every file written since the last round, and every folder in which
names changed, has been synced: only then is what lay below that end durable. So durability never jumps over an earlier
segment, nor counts bytes in a file whose name could still vanish. A round starts from the loop, not from the append
that asked for it: all batches of one turn of the loop share it.

A failed sync ends it all: the system may have dropped what it could not write, and a second sync would say all is
well. Rounds are chained by callbacks; there is no task.
"""

import asyncio
from collections.abc import Callable

from tailrace.ports.disk import Disk, File


class Syncer:
    def __init__(
        self,
        disk: Disk,
        end: Callable[[], int],
        moved: Callable[[], None],
        failed: Callable[[BaseException], None],
        synced: int,
    ) -> None:
        self._disk = disk
        self._end = end
        self._moved = moved
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.synced = synced  # everything below is on the disk
        self.files: dict[File, None] = {}  # written since the last round began
        self.folders: dict[str, None] = {}  # changed names since the last round began
        self.failure: BaseException | None = None
        self._scheduled = False
        self._under_way = 0  # syncs of this round that have not ended
        self._captured = synced
        self._waiting: list[asyncio.Future[None]] = []  # for this round
        self._waiting_next: list[asyncio.Future[None]] = []

    def soon(self) -> None:
        """Start a round on the loop's next turn, or after the one under way; once, however often asked."""
        if not self._scheduled and self.failure is None:
            self._scheduled = True
            if not self._under_way:
                self._loop.call_soon(self._start)

    def flush(self) -> "asyncio.Future[None]":
        """Done when everything written before this call is on the disk."""
        done: asyncio.Future[None] = self._loop.create_future()
        if self.failure is not None:
            done.set_exception(self.failure)
        elif not (self.files or self.folders or self._under_way):
            done.set_result(None)
        else:
            self._waiting_next.append(done)
            self.soon()
        return done

    def truncated(self, end: int) -> None:
        """The log ends earlier now; a round under way says nothing about what will be written there."""
        self._captured = min(self._captured, end)
        self.synced = min(self.synced, end)

    def forget(self, path: str) -> None:
        """A file is about to be removed: sync it no more."""
        for file in [file for file in self.files if file.path == path]:
            del self.files[file]
            file.close()

    def abandon(self, reason: OSError) -> None:
        """What was written will be removed: sync none of it, and tell those who wait."""
        self.files.clear()
        self.folders.clear()
        self._give_up(reason)

    def _start(self) -> None:
        self._scheduled = False
        if self.failure is not None:
            return
        self._captured = self._end()
        self._waiting, self._waiting_next = self._waiting_next, []
        files, self.files = self.files, {}
        folders, self.folders = self.folders, {}
        try:
            syncs = [file.sync() for file in files]
            syncs += [self._disk.sync_dir(folder) for folder in folders]
        except OSError as error:
            self._fail(error)
            return
        self._under_way = len(syncs)
        if not syncs:
            self._finish()
        for sync in syncs:
            sync.add_done_callback(self._ended)

    def _ended(self, sync: "asyncio.Future[None]") -> None:
        self._under_way -= 1
        error = OSError("the sync was cancelled") if sync.cancelled() else sync.exception()
        if error is not None:
            self._fail(error)
        elif self._under_way == 0 and self.failure is None:
            self._finish()

    def _finish(self) -> None:
        self.synced = max(self.synced, self._captured)
        waiting, self._waiting = self._waiting, []
        if self._scheduled:
            self._start()
        for done in waiting:
            if not done.done():
                done.set_result(None)
        self._moved()

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self._give_up(error)
            self._failed(error)

    def _give_up(self, error: BaseException) -> None:
        self.failure = self.failure or error
        for done in self._waiting + self._waiting_next:
            if not done.done():
                done.set_exception(error)
        self._waiting, self._waiting_next = [], []
