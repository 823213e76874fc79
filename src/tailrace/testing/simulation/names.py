"""Folders and names twice: as every reader sees them, and as they would be found after a power cut.

A change of names (create, rename, remove) is seen at once and waits in `pending` until a sync of a folder that it
touches makes it durable. Syncing a file's content does nothing for its name; a folder that is not durable itself takes
all below it away. A power cut keeps any subset of the pending changes that a file system could have kept: a rename is
one change, and a change brings with it all earlier ones to the same names.
"""

import errno
import os
from collections.abc import Iterator

from tailrace.model.frozen import frozen
from tailrace.testing.simulation.image import Image


class Folder:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Folder | Image] = {}
        self.durable: dict[str, Folder | Image] = {}


Node = Folder | Image
DirectoryEntry = tuple[Folder, str]


@frozen
class NameChange:
    serial: int
    left: DirectoryEntry | None  # the name that went
    taken: DirectoryEntry | None  # the name that came, or was given anew
    node: Node | None  # what `taken` names now

    def places(self) -> list[DirectoryEntry]:
        return [place for place in (self.left, self.taken) if place is not None]


class Names:
    def __init__(self) -> None:
        self.root = Folder()
        self.pending: list[NameChange] = []
        self.next_serial = 0  # every change below it has been made; readers may cache what they found until it moves

    # Looking

    def find(self, path: str) -> Node | None:
        try:
            return self.node(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def node(self, path: str) -> Node:
        node: Node = self.root
        for name in _parts(path):
            if not isinstance(node, Folder):
                raise failed(errno.ENOTDIR, path)
            if name not in node.entries:
                raise failed(errno.ENOENT, path)
            node = node.entries[name]
        return node

    def folder(self, path: str) -> Folder:
        node = self.node(path)
        if not isinstance(node, Folder):
            raise failed(errno.ENOTDIR, path)
        return node

    def place(self, path: str) -> DirectoryEntry:
        parts = _parts(path)
        if not parts:
            raise failed(errno.EISDIR, path)
        return self.folder("/".join(parts[:-1])), parts[-1]

    def images(self) -> "Iterator[tuple[str, Image]]":
        """All files, by path."""
        return _images("", self.root)

    def size_below(self, path: str) -> int:
        """Bytes in all files below a folder."""
        return sum(len(image.content) for _, image in _images("", self.folder(path)))

    # Changing

    def create(self, path: str, node: Node) -> None:
        self._change(None, self.place(path), node)

    def make_dirs(self, path: str) -> None:
        parts = _parts(path)
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            node = self.find(above)
            if node is None:
                self.create(above, Folder())
            elif not isinstance(node, Folder):
                raise failed(errno.EEXIST if depth == len(parts) else errno.ENOTDIR, path)

    def rename(self, old: str, new: str) -> None:
        left, taken = self.place(old), self.place(new)
        node = self.node(old)
        replaced = taken[0].entries.get(taken[1])
        if replaced is node:
            return
        if f"{normal(new)}/".startswith(f"{normal(old)}/"):
            raise failed(errno.EINVAL, new)
        if f"{normal(old)}/".startswith(f"{normal(new)}/"):
            raise failed(errno.ENOTEMPTY, new)
        if isinstance(node, Folder):
            if isinstance(replaced, Image):
                raise failed(errno.ENOTDIR, new)
            if isinstance(replaced, Folder) and replaced.entries:
                raise failed(errno.ENOTEMPTY, new)
        elif isinstance(replaced, Folder):
            raise failed(errno.EISDIR, new)
        self._change(left, taken, node)

    def remove(self, path: str) -> None:
        folder, name = self.place(path)
        if name not in folder.entries:
            raise failed(errno.ENOENT, path)
        if isinstance(folder.entries[name], Folder):
            raise failed(errno.EISDIR, path)
        self._change((folder, name), None, None)

    def remove_tree(self, path: str) -> None:
        self._empty(self.folder(path))
        self._change(self.place(path), None, None)

    def _empty(self, folder: Folder) -> None:
        for name, node in sorted(folder.entries.items(), key=lambda entry: entry[0]):
            if isinstance(node, Folder):
                self._empty(node)
            self._change((folder, name), None, None)

    def _change(self, left: DirectoryEntry | None, taken: DirectoryEntry | None, node: Node | None) -> None:
        change = NameChange(serial=self.next_serial, left=left, taken=taken, node=node)
        self.next_serial += 1
        self.pending.append(change)
        if left is not None:
            del left[0].entries[left[1]]
        if taken is not None and node is not None:
            taken[0].entries[taken[1]] = node

    # What the disk keeps

    def synced(self, folder: Folder, mark: int) -> None:
        """A sync of `folder` that started when `next_serial` was `mark` has ended."""
        touched = [
            change.serial < mark and any(place[0] is folder for place in change.places()) for change in self.pending
        ]
        self._keep(touched)

    def power_cut(self, survives: list[bool]) -> None:
        self._keep(survives)
        self.pending.clear()
        self.next_serial += 1
        _forget_unsynced(self.root)

    def _keep(self, wanted: list[bool]) -> None:
        """Make the wanted changes durable, and what they stand on; the others stay pending."""
        needed: set[DirectoryEntry] = set()
        for at in reversed(range(len(self.pending))):
            places = self.pending[at].places()
            if wanted[at] or any(place in needed for place in places):
                wanted[at] = True
                needed.update(places)
        for change, keep in zip(self.pending, wanted, strict=True):
            if keep:
                _apply(change)
        self.pending = [change for change, keep in zip(self.pending, wanted, strict=True) if not keep]


def _apply(change: NameChange) -> None:
    if change.left is not None:
        change.left[0].durable.pop(change.left[1], None)
    if change.taken is not None and change.node is not None:
        change.taken[0].durable[change.taken[1]] = change.node


def _forget_unsynced(folder: Folder) -> None:
    folder.entries = dict(folder.durable)
    for node in folder.entries.values():
        if isinstance(node, Folder):
            _forget_unsynced(node)


def _images(path: str, folder: Folder) -> "Iterator[tuple[str, Image]]":
    for name, node in sorted(folder.entries.items(), key=lambda entry: entry[0]):
        if isinstance(node, Folder):
            yield from _images(f"{path}/{name}", node)
        else:
            yield f"{path}/{name}", node


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"{path!r}: simulated paths do not climb")
    return parts


def normal(path: str) -> str:
    """One spelling for each path."""
    return "/".join(_parts(path))


def failed(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
