"""The cases of `make bench`: each starts what it needs, measures in rounds, and yields its outcomes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.ours import Fsync
from benchmarks.processes import Server

Start = Callable[[Path, Fsync], AbstractContextManager[Server]]
