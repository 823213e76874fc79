"""The directory tree of a disk, twice: as every reader sees it, and as it would be after a power cut.

A change of directory entries (create, rename, remove) is visible at once and waits in `pending` until a sync of a
folder that it touches makes it durable. Syncing a file's content does not make its directory entry durable, and
everything below a folder whose own entry is not durable is lost with it. A power cut keeps any subset of the pending
changes that a file system could have kept: a rename is one change, and if a change is kept, so are all earlier changes
of the same entries.
"""

import errno
import os
from collections.abc import Iterator

from tailrace.model.frozen import frozen
from tailrace.testing.simulation.file_content import FileContent


class Folder:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Folder | FileContent] = {}
        self.durable: dict[str, Folder | FileContent] = {}


Node = Folder | FileContent
DirectoryEntry = tuple[Folder, str]


@frozen
class EntryChange:
    serial: int
    removed: DirectoryEntry | None
    added: DirectoryEntry | None  # created or replaced
    node: Node | None  # what `added` refers to now

    def entries(self) -> list[DirectoryEntry]:
        return [entry for entry in (self.removed, self.added) if entry is not None]


class DirectoryTree:
    def __init__(self) -> None:
        self.root = Folder()
        self.pending: list[EntryChange] = []
        self.next_serial = 0  # of the next change; while it stays the same, every lookup gives the same result

    # Lookups

    def find(self, path: str) -> Node | None:
        try:
            return self.node(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def node(self, path: str) -> Node:
        node: Node = self.root
        for name in _parts(path):
            if not isinstance(node, Folder):
                raise os_error(errno.ENOTDIR, path)
            if name not in node.entries:
                raise os_error(errno.ENOENT, path)
            node = node.entries[name]
        return node

    def folder(self, path: str) -> Folder:
        node = self.node(path)
        if not isinstance(node, Folder):
            raise os_error(errno.ENOTDIR, path)
        return node

    def entry_of(self, path: str) -> DirectoryEntry:
        parts = _parts(path)
        if not parts:
            raise os_error(errno.EISDIR, path)
        return self.folder("/".join(parts[:-1])), parts[-1]

    def files(self) -> "Iterator[tuple[str, FileContent]]":
        """All files with their paths, sorted by name within each folder."""
        return _files("", self.root)

    def size_below(self, path: str) -> int:
        """The bytes of all files below a folder."""
        return sum(len(content.visible) for _, content in _files("", self.folder(path)))

    # Changes

    def create(self, path: str, node: Node) -> None:
        self._change(None, self.entry_of(path), node)

    def make_dirs(self, path: str) -> None:
        parts = _parts(path)
        for depth in range(1, len(parts) + 1):
            prefix = "/".join(parts[:depth])
            node = self.find(prefix)
            if node is None:
                self.create(prefix, Folder())
            elif not isinstance(node, Folder):
                raise os_error(errno.EEXIST if depth == len(parts) else errno.ENOTDIR, path)

    def rename(self, old: str, new: str) -> None:
        removed, added = self.entry_of(old), self.entry_of(new)
        node = self.node(old)
        replaced = added[0].entries.get(added[1])
        if replaced is node:
            return
        if f"{normalized(new)}/".startswith(f"{normalized(old)}/"):
            raise os_error(errno.EINVAL, new)
        if f"{normalized(old)}/".startswith(f"{normalized(new)}/"):
            raise os_error(errno.ENOTEMPTY, new)
        if isinstance(node, Folder):
            if isinstance(replaced, FileContent):
                raise os_error(errno.ENOTDIR, new)
            if isinstance(replaced, Folder) and replaced.entries:
                raise os_error(errno.ENOTEMPTY, new)
        elif isinstance(replaced, Folder):
            raise os_error(errno.EISDIR, new)
        self._change(removed, added, node)

    def remove(self, path: str) -> None:
        folder, name = self.entry_of(path)
        if name not in folder.entries:
            raise os_error(errno.ENOENT, path)
        if isinstance(folder.entries[name], Folder):
            raise os_error(errno.EISDIR, path)
        self._change((folder, name), None, None)

    def remove_tree(self, path: str) -> None:
        self._empty(self.folder(path))
        self._change(self.entry_of(path), None, None)

    def _empty(self, folder: Folder) -> None:
        for name, node in sorted(folder.entries.items(), key=lambda entry: entry[0]):
            if isinstance(node, Folder):
                self._empty(node)
            self._change((folder, name), None, None)

    def _change(self, removed: DirectoryEntry | None, added: DirectoryEntry | None, node: Node | None) -> None:
        change = EntryChange(serial=self.next_serial, removed=removed, added=added, node=node)
        self.next_serial += 1
        self.pending.append(change)
        if removed is not None:
            del removed[0].entries[removed[1]]
        if added is not None and node is not None:
            added[0].entries[added[1]] = node

    # Durability

    def synced(self, folder: Folder, mark: int) -> None:
        """End a sync of `folder` that started when `next_serial` was `mark`."""
        touched = [
            change.serial < mark and any(entry[0] is folder for entry in change.entries()) for change in self.pending
        ]
        self._make_durable(touched)

    def power_cut(self, survives: list[bool]) -> None:
        self._make_durable(survives)
        self.pending.clear()
        self.next_serial += 1
        _drop_unsynced(self.root)

    def _make_durable(self, wanted: list[bool]) -> None:
        """Make the wanted changes durable, and all earlier changes of the same entries; the others stay pending."""
        needed: set[DirectoryEntry] = set()
        for index in reversed(range(len(self.pending))):
            entries = self.pending[index].entries()
            if wanted[index] or any(entry in needed for entry in entries):
                wanted[index] = True
                needed.update(entries)
        for change, keep in zip(self.pending, wanted, strict=True):
            if keep:
                _apply_to_durable(change)
        self.pending = [change for change, keep in zip(self.pending, wanted, strict=True) if not keep]


def _apply_to_durable(change: EntryChange) -> None:
    if change.removed is not None:
        change.removed[0].durable.pop(change.removed[1], None)
    if change.added is not None and change.node is not None:
        change.added[0].durable[change.added[1]] = change.node


def _drop_unsynced(folder: Folder) -> None:
    folder.entries = dict(folder.durable)
    for node in folder.entries.values():
        if isinstance(node, Folder):
            _drop_unsynced(node)


def _files(path: str, folder: Folder) -> "Iterator[tuple[str, FileContent]]":
    for name, node in sorted(folder.entries.items(), key=lambda entry: entry[0]):
        if isinstance(node, Folder):
            yield from _files(f"{path}/{name}", node)
        else:
            yield f"{path}/{name}", node


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"{path!r}: a simulated path must not contain '..'")
    return parts


def normalized(path: str) -> str:
    """The one spelling of a path: without leading, double or trailing slashes."""
    return "/".join(_parts(path))


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
