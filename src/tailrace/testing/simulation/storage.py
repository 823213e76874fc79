"""A machine's disk: what outlives its processes, and the faults one can set on it.

A `SimDisk` is one process's way to it. Here are the files, what a power cut does to them, how long things take, and
what goes wrong: a full disk, a failed sync, a flipped bit, a file that cannot be read.
"""

import errno
import random
from collections.abc import Callable
from contextvars import Context
from typing import Final

from tailrace.testing.simulation.chance import Odds
from tailrace.testing.simulation.image import Image
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.names import Folder, Names, failed, normal

CAPACITY_DEFAULT_BYTES: Final = 1 << 40
SURVIVALS: Final = (0.0, 0.1, 0.5, 0.9, 1.0)  # how many of the pending changes live through a power cut

Tracer = Callable[..., None]


class Storage:
    def __init__(self, loop: SimLoop, chance: random.Random, odds: Odds, trace: Tracer) -> None:
        self.loop = loop
        self.chance = chance
        self.odds = odds
        self.trace = trace
        self.names = Names()
        self.capacity_bytes = CAPACITY_DEFAULT_BYTES
        self.used_bytes = 0
        self.takes_names = True
        self._full_below = "/"
        self.power_cuts = 0
        self.locks: dict[str, str] = {}  # path → owner's words
        self._kernel = Context()  # what the kernel does belongs to no process
        self._syncs_to_fail: list[str] = []
        self._unreadable: list[str] = []
        self._operations_left: int | None = None
        self._at_operation: Callable[[], None] | None = None
        self.on_cut: Callable[[str], None] | None = None  # told the path of a file that is about to become shorter

    # Faults

    def fill(self, room_bytes: int = 0, *, new_names: bool = True, below: str = "/") -> None:
        """Let `room_bytes` more be written, then answer ENOSPC; a write that does not fit leaves what fits.

        Without `new_names` no file or folder can be made either, as when a file system runs out of inodes.
        With `below` one folder is full, and others are not, as where it has a quota.
        """
        self.capacity_bytes = self.used_bytes + room_bytes
        self.takes_names = new_names
        self._full_below = below

    def make_room(self) -> None:
        self.capacity_bytes = CAPACITY_DEFAULT_BYTES
        self.takes_names = True

    def fail_next_sync(self, path: str) -> None:
        """The next sync of this file or folder ends with EIO; what it was to cover may never reach the disk."""
        self._syncs_to_fail.append(normal(path))

    def fail_reads(self, path: str) -> None:
        self._unreadable.append(normal(path))

    def heal_reads(self, path: str) -> None:
        self._unreadable.remove(normal(path))

    def flip_bit(self, path: str, position: int | None = None) -> int:
        """Flip one bit at a position, or anywhere in the file; the position is returned."""
        image = self.names.find(path)
        assert isinstance(image, Image), f"{path} is no file"
        where = self.chance.randrange(len(image.content)) if position is None else position
        image.flip(where, self.chance.randrange(8))
        self.trace("flip", path, where)
        return where

    def at_operation(self, number: int, call: Callable[[], None]) -> None:
        """Call just before the `number`-th write or change of names from now: a crash between two of one callback."""
        self._operations_left, self._at_operation = number, call

    def forget_operation(self) -> None:
        """Let what `at_operation` was set for not happen any more."""
        self._operations_left = self._at_operation = None

    # What the port asks

    def changing(self) -> None:
        """Something is about to be written or renamed."""
        if self._operations_left is not None:
            self._operations_left -= 1
            if self._operations_left <= 0 and self._at_operation is not None:
                call, self._at_operation, self._operations_left = self._at_operation, None, None
                call()

    def check_takes_names(self, path: str) -> None:
        if not self.takes_names:
            raise failed(errno.ENOSPC, path)

    def write(self, image: Image, path: str, data: bytes, position: int) -> None:
        room = self.capacity_bytes - self.used_bytes + len(image.content) - position
        fits = data if len(data) <= room or not path.startswith(self._full_below) else data[: max(0, room)]
        before = len(image.content)
        if fits:
            image.write(position, fits)
        self.used_bytes += len(image.content) - before
        if len(fits) < len(data):
            raise failed(errno.ENOSPC, path)

    def truncate(self, image: Image, path: str, size: int) -> None:
        if self.on_cut is not None and size < len(image.content):
            self.on_cut(path)
        self.used_bytes += size - len(image.content)
        image.truncate(size)

    def is_unreadable(self, path: str) -> bool:
        return normal(path) in self._unreadable if self._unreadable else False

    def check_readable(self, path: str) -> None:
        if self.is_unreadable(path):
            raise failed(errno.EIO, path)

    def sync(self, image: Image, path: str, done: Callable[[OSError | None], None]) -> None:
        mark = image.next_serial
        fails = self._takes_failure(path)

        def ended() -> None:
            if fails:
                image.sync_failed(mark, self.chance)
            else:
                image.synced(mark)
            done(failed(errno.EIO, path) if fails else None)

        self.later(self.odds.sync.draw(self.chance), ended)

    def sync_dir(self, path: str, done: Callable[[OSError | None], None]) -> None:
        mark = self.names.next_serial
        error: OSError | None = failed(errno.EIO, path) if self._takes_failure(path) else None
        folder: Folder | None = None
        try:
            folder = self.names.folder(path)
        except OSError as missing:
            error = missing

        def ended() -> None:
            if error is None and folder is not None:
                self.names.synced(folder, mark)
            done(error)

        self.later(self.odds.sync.draw(self.chance), ended)

    def _takes_failure(self, path: str) -> bool:
        if normal(path) not in self._syncs_to_fail:
            return False
        self._syncs_to_fail.remove(normal(path))
        return True

    def later(self, seconds: float, ended: Callable[[], None]) -> None:
        """Call back from the kernel, unless the power goes first."""
        cuts = self.power_cuts

        def end() -> None:
            if self.power_cuts == cuts:
                ended()

        self.loop.call_later(seconds, end, context=self._kernel)

    # Ends

    def process_died(self) -> None:
        self.locks.clear()
        self.forget_operation()

    def power_cut(self) -> None:
        """Lose any subset of what was not synced."""
        self.process_died()
        self.power_cuts += 1
        survival = self.chance.choice(SURVIVALS)
        self.names.power_cut([self.chance.random() < survival for _ in self.names.pending])
        self.used_bytes = 0
        for _, image in self.names.images():
            image.power_cut(self.chance, survival)
            self.used_bytes += len(image.content)
