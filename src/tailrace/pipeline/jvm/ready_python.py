"""A Python that has done its imports, for Spark to start its workers from.

Spark starts an interpreter for each thing that it asks Python: which sources there are, what this one is like, what
there is to read, and the reading itself. Each imports Spark, Arrow and us anew, one after the other: most of what a
person waits for a session's first answer. So a local session keeps one process that has imported all of it and does
nothing else (`python -m tailrace.pipeline.jvm.ready_python`). The program that Spark takes for its Python runs
`hand_over`, which passes Spark's call on to that process, with its files and environment. There a child is forked,
which goes on as the interpreter that was asked for.

Nothing is imported that could not be forked: the threads that Arrow's and numpy's libraries start wait for work, and
are theirs to stop at a fork; there is no random state that children would share. Elsewhere than on Linux a library of
the system may forbid it, so it is for Linux alone.
"""

import atexit
import gc
import io
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from shlex import join
from types import ModuleType
from typing import Any, Final

from tailrace.pipeline.jvm import hand_over
from tailrace.pipeline.jvm.hand_over import FAILED, NUMBER

PROGRAM_NAME: Final = "python"
DOOR_NAME: Final = "door"
PATH_VARIABLE: Final = "PYTHONPATH"
AS_FOR_WORKERS: Final = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}  # what Spark sets for its workers
WANTED: Final = (  # not the one that pushes filters down: whether it was imported tells a reader if there are any
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "tailrace.pipeline.source.batch",
)


@dataclass(frozen=True, slots=True)
class ReadyPython:
    program: Path
    process: "subprocess.Popen[bytes]"

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.program.parent, ignore_errors=True)

    def leave(self) -> None:
        """For a fork of the driver: it ends with the driver, not with this."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        atexit.unregister(self.stop)


@cache
def ready_python() -> ReadyPython:
    """The one of this process, begun in the background if there is none yet; OSError where there can be none."""
    folder = Path(tempfile.mkdtemp(prefix="tailrace-python-"))
    try:
        ready = _begin(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    atexit.register(ready.stop)
    os.register_at_fork(after_in_child=ready.leave)
    return ready


def _begin(folder: Path) -> ReadyPython:
    program, door = folder / PROGRAM_NAME, folder / DOOR_NAME
    command = join([sys.executable, "-IS", hand_over.__file__, sys.executable, str(door)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o700)
    if not os.access(program, os.X_OK):
        raise PermissionError(f"nothing can be run from {folder}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno()), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**AS_FOR_WORKERS, **os.environ},
            pass_fds=[listener.fileno()],
            start_new_session=True,  # Ctrl-C is for the driver
        )
    return ReadyPython(program, process)


def serve(listener: socket.socket) -> None:
    """Fork a child for every call, until the driver is gone."""
    for module in WANTED:
        with suppress(Exception):  # whoever needs it is told when it imports it
            import_module(module)
    gc.freeze()
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # see above
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended: hand_over is told by the child
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(sys.stdin, select.POLLIN)
    while sys.stdin.fileno() not in dict(poll.poll()):
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                become(connection)


def become(connection: socket.socket) -> None:
    """Go on as the interpreter that was asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    call = _receive(connection)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.path[:] = _search_path(call["folder"])
    # as Spark wants it: what its workers print must not wait for an end that they do not live to see
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    kind, what, *words = call["words"]
    sys.argv = [kind, *words]
    connection.sendall(NUMBER.pack(os.getpid()))
    os.register_at_fork(after_in_child=connection.close)  # it ends with this process, not with its workers
    code: Any = FAILED
    try:
        if kind == "-c":
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(what, vars(main))
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
        raise
    finally:
        connection.sendall(bytes([code & 0xFF if isinstance(code, int) else FAILED]))
    sys.exit()


def _receive(connection: socket.socket) -> Mapping[str, Any]:
    size, files, *_ = socket.recv_fds(connection, NUMBER.size, 3)
    if len(size) < NUMBER.size:
        sys.exit("whoever called is gone")
    for own, given in enumerate(files):
        os.dup2(given, own)
        os.close(given)
    (length,) = NUMBER.unpack(size)
    told: Mapping[str, Any] = json.loads(connection.recv(length, socket.MSG_WAITALL))
    return told


def _search_path(folder: str) -> list[str]:
    """Where a fresh interpreter would look for modules, with the variables of now."""
    given = os.environ.get(PATH_VARIABLE, "").split(os.pathsep)
    return [folder, *(one for one in given if one), *own_path]


if __name__ == "__main__":
    before = (os.getcwd(), *os.environ.get(PATH_VARIABLE, "").split(os.pathsep))
    own_path = [one for one in sys.path if one not in before]
    own = os.getpid()
    try:
        with socket.socket(fileno=int(sys.argv[1])) as door:
            serve(door)
    finally:
        if os.getpid() == own:  # and no child of ours
            shutil.rmtree(sys.argv[2], ignore_errors=True)  # of a driver that was killed
