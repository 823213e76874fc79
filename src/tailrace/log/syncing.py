"""Group commit: one round of fsyncs at a time; what is written meanwhile is covered by the next round.

A round captures the log end when it starts, and ends when every file written since the last round, and every folder in
which file names changed, has been fsynced. Only then is everything below the captured end durable. So durability never
skips an earlier segment, and never counts bytes in a file whose name could still be lost. A round is started by the
event loop, not by the append that requests it: all batches of one turn of the loop share it.

A failed fsync is final. The kernel may have dropped the pages it could not write, and a second fsync would succeed
without them. Rounds are chained by callbacks; there is no task.
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
        self.synced = synced  # every offset below is durable
        self.files: dict[File, None] = {}  # written since the last round began
        self.folders: dict[str, None] = {}  # file names in them changed since the last round began
        self.failure: BaseException | None = None
        self._scheduled = False
        self._under_way = 0  # fsyncs of this round that have not ended
        self._captured = synced  # the log end when this round began
        self._waiting: list[asyncio.Future[None]] = []  # for this round
        self._waiting_next: list[asyncio.Future[None]] = []

    def soon(self) -> None:
        """Start a round in the loop's next turn, or after the one under way; repeated calls are combined."""
        if not self._scheduled and self.failure is None:
            self._scheduled = True
            if not self._under_way:
                self._loop.call_soon(self._start)

    def flush(self) -> "asyncio.Future[None]":
        """Done when everything written before this call is durable."""
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
        """The log was truncated to `end`: a round under way does not cover what is written there afterwards."""
        self._captured = min(self._captured, end)
        self.synced = min(self.synced, end)

    def forget(self, path: str) -> None:
        """A file is about to be removed: do not fsync it."""
        for file in [file for file in self.files if file.path == path]:
            del self.files[file]
            file.close()

    def abandon(self, reason: OSError) -> None:
        """The whole log is about to be removed: fsync nothing, and fail everything that waits for a round."""
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
        self._under_way = len(files) + len(folders)
        try:
            for file in files:
                file.sync_then(self._ended)
            for folder in folders:
                self._disk.sync_dir(folder).add_done_callback(self._folder_ended)
        except OSError as error:
            self._fail(error)
            return
        if not self._under_way:
            self._finish()

    def _folder_ended(self, sync: "asyncio.Future[None]") -> None:
        self._ended(OSError("the fsync was cancelled") if sync.cancelled() else sync.exception())

    def _ended(self, error: BaseException | None) -> None:
        self._under_way -= 1
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
