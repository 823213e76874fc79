"""A machine's disk, which survives the machine's processes, and the faults that can be injected into it.

Processes use it through the disk port (`disk.SimDisk`). This module holds the files, decides how long operations take
and what a power cut leaves, and injects faults: a full disk, a failed sync, a flipped bit, an unreadable file, a crash
before a given operation.
"""

import errno
import random
from collections.abc import Callable
from contextvars import Context
from typing import Final

from tailrace.testing.simulation.directory_tree import DirectoryTree, Folder, normalized, os_error
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.randomness import Odds

CAPACITY_DEFAULT_BYTES: Final = 1 << 40
SURVIVAL_CHANCES: Final = (0.0, 0.1, 0.5, 0.9, 1.0)  # of each unsynced change; one of them is drawn per power cut

Tracer = Callable[..., None]


class Storage:
    def __init__(self, loop: SimLoop, rng: random.Random, odds: Odds, trace: Tracer) -> None:
        self.loop = loop
        self.rng = rng
        self.odds = odds
        self.trace = trace
        self.tree = DirectoryTree()
        self.capacity_bytes = CAPACITY_DEFAULT_BYTES
        self.used_bytes = 0
        self.allows_new_names = True
        self._full_below = "/"  # the folder whose files get ENOSPC
        self.power_cuts = 0
        self.locks: dict[str, str] = {}  # path → what its holder wrote about itself
        self._kernel = Context()  # what the kernel does belongs to no process
        self._syncs_to_fail: list[str] = []
        self._unreadable: list[str] = []
        self._operations_left: int | None = None
        self._at_operation: Callable[[], None] | None = None
        self.on_truncate: Callable[[str], None] | None = None  # called with the path before a file is made shorter

    # Faults

    def fill(self, room_bytes: int = 0, *, new_names: bool = True, below: str = "/") -> None:
        """Fill the disk: after `room_bytes` more, writes fail with ENOSPC; one that fits in part is written in part.

        With `new_names=False` no file or folder can be created either, as when a file system runs out of inodes.
        With `below` only that folder is full, as with a quota.
        """
        self.capacity_bytes = self.used_bytes + room_bytes
        self.allows_new_names = new_names
        self._full_below = below

    def make_room(self) -> None:
        """Undo `fill`."""
        self.capacity_bytes = CAPACITY_DEFAULT_BYTES
        self.allows_new_names = True

    def fail_next_sync(self, path: str) -> None:
        """Let the next sync of this file or folder fail with EIO; the changes it covers may never reach the disk."""
        self._syncs_to_fail.append(normalized(path))

    def fail_reads(self, path: str) -> None:
        """Let every read of this file fail with EIO, until `heal_reads`."""
        self._unreadable.append(normalized(path))

    def heal_reads(self, path: str) -> None:
        self._unreadable.remove(normalized(path))

    def flip_bit(self, path: str, position: int | None = None) -> int:
        """Flip one bit at a position, or at a random one; returns the position."""
        content = self.tree.find(path)
        assert isinstance(content, FileContent), f"{path} is not a file"
        where = self.rng.randrange(len(content.visible)) if position is None else position
        content.flip(where, self.rng.randrange(8))
        self.trace("flip", path, where)
        return where

    def at_operation(self, number: int, call: Callable[[], None]) -> None:
        """Call `call` just before the `number`-th write, create, rename or remove from now.

        With a crash as the call, a process dies between two operations of one callback.
        """
        self._operations_left, self._at_operation = number, call

    def forget_operation(self) -> None:
        """Cancel `at_operation`."""
        self._operations_left = self._at_operation = None

    # Operations of the disk port

    def before_change(self) -> None:
        """Count one write, create, rename or remove, which is about to happen."""
        if self._operations_left is not None:
            self._operations_left -= 1
            if self._operations_left <= 0 and self._at_operation is not None:
                call, self._at_operation, self._operations_left = self._at_operation, None, None
                call()

    def check_new_name(self, path: str) -> None:
        if not self.allows_new_names:
            raise os_error(errno.ENOSPC, path)

    def write(self, content: FileContent, path: str, data: bytes, position: int) -> None:
        room = self.capacity_bytes - self.used_bytes + len(content.visible) - position
        fits = data if len(data) <= room or not path.startswith(self._full_below) else data[: max(0, room)]
        before = len(content.visible)
        if fits:
            content.write(position, fits)
        self.used_bytes += len(content.visible) - before
        if len(fits) < len(data):
            raise os_error(errno.ENOSPC, path)

    def truncate(self, content: FileContent, path: str, size: int) -> None:
        if self.on_truncate is not None and size < len(content.visible):
            self.on_truncate(path)
        self.used_bytes += size - len(content.visible)
        content.truncate(size)

    def is_unreadable(self, path: str) -> bool:
        return normalized(path) in self._unreadable if self._unreadable else False

    def check_readable(self, path: str) -> None:
        if self.is_unreadable(path):
            raise os_error(errno.EIO, path)

    def sync(self, content: FileContent, path: str, done: Callable[[OSError | None], None]) -> None:
        mark = content.next_serial
        fails = self._is_set_to_fail(path)

        def finish() -> None:
            if fails:
                content.sync_failed(mark, self.rng)
            else:
                content.synced(mark)
            done(os_error(errno.EIO, path) if fails else None)

        self.later(self.odds.sync.draw(self.rng), finish)

    def sync_dir(self, path: str, done: Callable[[OSError | None], None]) -> None:
        mark = self.tree.next_serial
        error: OSError | None = os_error(errno.EIO, path) if self._is_set_to_fail(path) else None
        folder: Folder | None = None
        try:
            folder = self.tree.folder(path)
        except OSError as missing:
            error = missing

        def finish() -> None:
            if error is None and folder is not None:
                self.tree.synced(folder, mark)
            done(error)

        self.later(self.odds.sync.draw(self.rng), finish)

    def _is_set_to_fail(self, path: str) -> bool:
        """Whether `fail_next_sync` was called for this path; it holds for one sync."""
        if normalized(path) not in self._syncs_to_fail:
            return False
        self._syncs_to_fail.remove(normalized(path))
        return True

    def later(self, seconds: float, finish: Callable[[], None]) -> None:
        """Finish an operation of the kernel after a delay, unless a power cut comes first."""
        cuts = self.power_cuts

        def finish_unless_cut() -> None:
            if self.power_cuts == cuts:
                finish()

        self.loop.call_later(seconds, finish_unless_cut, context=self._kernel)

    # Crashes

    def process_died(self) -> None:
        self.locks.clear()
        self.forget_operation()

    def power_cut(self) -> None:
        """Lose any subset of what was not synced, and tear writes."""
        self.process_died()
        self.power_cuts += 1
        survival = self.rng.choice(SURVIVAL_CHANCES)
        self.tree.power_cut([self.rng.random() < survival for _ in self.tree.pending])
        self.used_bytes = 0
        for _, content in self.tree.files():
            content.power_cut(self.rng, survival)
            self.used_bytes += len(content.visible)
