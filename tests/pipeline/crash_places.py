"""Places where a test lets a process of the pipeline die, to see what is left: before or after a function of ours.

The pipeline knows nothing of them. The function is wrapped, in one of two ways:

- `dying_at` wraps it in this process, which plays many: the block is left there, by an exception that nothing catches.
- `crash_variables` are for a driver that a test starts. With them, every Python that the driver or its JVM starts wraps
  these functions when it imports them (`crash_hook/sitecustomize.py`), and reads the crash file each time it comes to
  such a place. If the file has the name of the place, it is removed, so that it happens once, and the process is
  killed: no exception, no clean-up. A second line of the file takes other processes along: the parents of this one,
  up to the one with that name or pid. A worker's nearest `java` is its executor; the test knows the driver's pid.

Python workers import this module, so it imports nothing but the standard library.
"""

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

VARIABLE: Final = "TESTS_CRASH_FILE"
ROOT: Final = Path(__file__).parents[2]
HOOK_FOLDER: Final = Path(__file__).with_name("crash_hook")

Reached = Callable[[str], None]  # what to do at a place; gets its name


class CrashPlace(NamedTuple):
    module: str  # below tailrace.pipeline: where the function is looked up when it is called
    function: str  # or Class.method
    when: Literal["before", "after", "after each row"]  # the last: of a generator, when it is resumed


PLACES: Final = {
    "source: offsets planned": CrashPlace("source.stream", "plan_ranges", "before"),
    "source: rows read": CrashPlace("source.task", "ReadTask._rows", "after each row"),
    "archive: records fetched": CrashPlace("histories.writing", "DayFile.finish", "before"),
    "archive: files written": CrashPlace("histories.writing", "_removed", "before"),
    "archive: before the commit": CrashPlace("histories.archive", "commit_batch", "before"),
    "archive: committed": CrashPlace("histories.archive", "commit_batch", "after"),
    "sink: transaction begun": CrashPlace("sink.write_task", "_producer", "after"),
    "sink: rows written": CrashPlace("sink.write_task", "write_rows", "after"),
    "sink: before the decision": CrashPlace("sink.committing", "_decision", "before"),
    "sink: decided": CrashPlace("sink.committing", "_complete", "before"),
    "sink: between two commits": CrashPlace("sink.progress", "end_transaction", "after"),
    "sink: committed": CrashPlace("sink.committing", "commit_transactions", "after"),
    "sink: done": CrashPlace("sink.committing", "_abort_others", "before"),
    "compact: files merged": CrashPlace("upkeep.compact", "_merge", "after"),
    "compact: committed": CrashPlace("upkeep.compact", "_commit", "after"),
    "replay: records written": CrashPlace("replaying.partition", "commit_offsets_within", "before"),
    "replay: offsets moved": CrashPlace("replaying.partition", "commit_offsets_within", "after"),
    "replay: committed": CrashPlace("replaying.partition", "end_transaction", "after"),
}


class Died(BaseException):
    """Stands for the death of a process that this process plays; `except Exception` does not catch it."""


@contextmanager
def dying_at(place: str) -> Iterator[None]:
    """Leave the block at that place, as a killed process would. It is an error not to come there."""

    def die(_: str) -> None:
        raise Died

    module = import_module(_module_name(PLACES[place]))
    function, name = _function(module, PLACES[place])
    holders = [_owner(module, PLACES[place])]
    if function.__module__ == module.__name__:
        holders += [one for one in _importers() if vars(one).get(name) is function]
    try:
        for one in holders:
            setattr(one, name, _wrapped(function, place, die))
        yield
    except Died:
        return
    finally:
        for one in holders:
            setattr(one, name, function)
    raise AssertionError(f"{place!r} was not reached")


def crash_variables(crash_file: Path) -> dict[str, str]:
    """What the environment of a driver has in addition, so that it, its JVM and workers die where the file says."""
    path = [str(HOOK_FOLDER), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {VARIABLE: str(crash_file), "PYTHONPATH": os.pathsep.join(path)}


def install() -> None:
    """Wrap the functions of all places when their modules are imported; for `sitecustomize`."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in map(_module_name, PLACES.values()):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, place in PLACES.items():
            if _module_name(place) == module.__name__:
                function, attribute = _function(module, place)
                setattr(_owner(module, place), attribute, _wrapped(function, name, _die_if_asked))


def _module_name(place: CrashPlace) -> str:
    return f"tailrace.pipeline.{place.module}"


def _owner(module: ModuleType, place: CrashPlace) -> Any:
    """The module, or the class whose method it is."""
    class_name, _, _ = place.function.rpartition(".")
    return getattr(module, class_name) if class_name else module


def _function(module: ModuleType, place: CrashPlace) -> tuple[Callable[..., Any], str]:
    name = place.function.rpartition(".")[2]
    return getattr(_owner(module, place), name), name


def _importers() -> list[ModuleType]:
    """Modules of the pipeline and of these tests, which may have imported a function by its name."""
    rooms = ("tailrace.pipeline.", "tests.pipeline.")
    return [module for name, module in list(sys.modules.items()) if name.startswith(rooms)]


def _wrapped(function: Callable[..., Any], place: str, reached: Reached) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if PLACES[place].when == "before":
            reached(place)
        result = function(*args, **kwargs)
        if PLACES[place].when == "after":
            reached(place)
        return result

    @functools.wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
        for row in function(*args, **kwargs):
            yield row
            reached(place)

    return generate if PLACES[place].when == "after each row" else call


def _die_if_asked(place: str) -> None:
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    try:
        wanted, _, up_to = Path(path).read_text().strip().partition("\n")
        if wanted != place:
            return
        os.remove(path)
    except OSError:
        return  # no test has asked for it, or another process was faster
    for process in _with_parents(up_to):
        os.kill(process, signal.SIGKILL)


def _with_parents(up_to: str) -> list[int]:
    """Which processes are killed, this one last: a parent that sees its child gone would start another."""
    chain = [os.getpid()]
    while up_to and chain[-1] > 1:
        name = Path(f"/proc/{chain[-1]}/comm").read_text().strip()
        if up_to in (name, str(chain[-1])):
            return chain[::-1]
        status = Path(f"/proc/{chain[-1]}/stat").read_text()
        chain.append(int(status.rpartition(")")[2].split()[1]))
    return [os.getpid()]
