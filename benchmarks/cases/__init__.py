"""The cases of `make bench`: each starts its servers, measures in rounds, and yields outcomes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.ours import Fsync
from benchmarks.processes import Server

Start = Callable[[Path, Fsync], AbstractContextManager[Server]]
