"""`vacuum`: delete files that the history no longer needs, and nothing else.

A file that no live range names is one of three kinds: *replaced* by a compaction, at a time recorded in the log; an
*orphan*, left by a crashed writer, with a name in our format that is in no commit; or *unfinished*, with the temporary
name that files have while they are written. Any other file is not ours and is left alone. Recent files are kept too: a
reader may have listed them, or a writer may be about to commit them. While an archive is running, only replaced files
are deleted.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.delta_log import FOLDER_NAME, OWN_FOLDER, Snapshot
from tailrace.pipeline.histories.locking import exclusive_lock
from tailrace.pipeline.upkeep.safety_check import checked_snapshot

WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000

Kind = Literal["replaced", "orphan", "unfinished", "not ours"]

_OURS: Final = re.compile(r"topic=[^/]+/date=[^/]+/\d{5}-\d{20}-\d{20}\.parquet")
_UNFINISHED: Final = re.compile(r"topic=[^/]+/date=[^/]+/\..+\.parquet\.[0-9a-f]+|_delta_log/\.\d+\.[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    path: str
    kind: Kind
    size: int  # bytes
    since_ms: int  # when the file was replaced, or last modified

    def is_old(self, before_ms: int) -> bool:
        return self.kind != "not ours" and self.since_ms < before_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    gone: tuple[Leftover, ...]  # deleted files; in a dry run, the files that would be deleted
    left: tuple[Leftover, ...]  # too recent, not ours, or possibly of a running archive
    archive_at_work: bool

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.gone)


def vacuum(
    path: str | Path,
    *,
    older_than_ms: int = WEEK_MS,
    dry_run: bool = False,
    on_plan: Callable[[int], None] = lambda _: None,
    on_gone: Callable[[Leftover], None] = lambda _: None,
) -> Vacuumed:
    """Delete unneeded files older than `older_than_ms`. `PipelineFailed`, deleting none, if the history is unsound."""
    folder = Path(path).absolute()
    checked_snapshot(folder)
    with exclusive_lock(folder, "upkeep"), _archive_at_rest(folder) as at_rest:
        before_ms = int(time.time() * 1000) - older_than_ms + 1
        found = list(leftovers(folder, checked_snapshot(folder)))
        old = [one for one in found if one.is_old(before_ms) and (at_rest or one.kind == "replaced")]
        on_plan(len(old))
        for one in old if not dry_run else []:
            (folder / one.path).unlink(missing_ok=True)
            on_gone(one)
        checked_snapshot(folder)
    return Vacuumed(gone=tuple(old), left=tuple(one for one in found if one not in old), archive_at_work=not at_rest)


@contextmanager
def _archive_at_rest(folder: Path) -> Iterator[bool]:
    """Whether no archive is running; if so, block new ones, which might write to an orphan's file name again."""
    with ExitStack() as held:
        try:
            held.enter_context(exclusive_lock(folder, "archive"))
            at_rest = True
        except PipelineFailed:
            at_rest = False
        yield at_rest


def leftovers(folder: Path, snapshot: Snapshot) -> Iterator[Leftover]:
    """Files in the folder that do not belong to the history, of any age."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        kind = kind_of(name, snapshot) if path.is_file() else None
        if kind is not None:
            state = path.stat()
            since_ms = snapshot.removed[name] if kind == "replaced" else int(state.st_mtime * 1000)
            yield Leftover(path=name, kind=kind, size=state.st_size, since_ms=since_ms)


def kind_of(name: str, snapshot: Snapshot) -> Kind | None:
    """The kind of a file, by its path; None when it belongs to the history."""
    if name in snapshot.live or name.startswith(f"{OWN_FOLDER}/"):
        return None
    if name in snapshot.removed:
        return "replaced"
    if _UNFINISHED.fullmatch(name):
        return "unfinished"
    if name.startswith(f"{FOLDER_NAME}/"):
        return None
    return "orphan" if _OURS.fullmatch(name) else "not ours"
