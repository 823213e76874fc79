"""A Python process with all imports done (the ready process), from which Spark's Python workers are forked.

Spark starts a Python interpreter for each step of a read: look up the data sources, create the data source, plan the
read, and read. Each interpreter imports PySpark, Arrow and Tailrace again, one after the other, which is most of the
wait for a session's first result. So a local session keeps one process that has imported all of them and does nothing
else (`python -m tailrace.pipeline.jvm.ready_python`). The program that Spark uses as its Python runs
`python_forwarder`, which forwards Spark's call to the ready process, with its standard streams and environment. The
ready process forks a child, which continues as the interpreter that Spark asked for.

All imported modules are safe to fork: the threads that Arrow and numpy start are idle, and those libraries handle them
at a fork; there is no random state that children would share. On other systems than Linux, system libraries may forbid
a fork, so the ready process is used on Linux only.
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

from tailrace.pipeline.jvm import python_forwarder
from tailrace.pipeline.jvm.python_forwarder import FAILED, NUMBER

PROGRAM_NAME: Final = "python"
DOOR_NAME: Final = "door"
PATH_VARIABLE: Final = "PYTHONPATH"
AS_FOR_WORKERS: Final = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}  # the variables that Spark sets for its workers
WANTED: Final = (  # not the filter pushdown worker: a reader checks if that is imported to see if there are filters
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
        """Detach a fork of the driver: the ready process ends with the driver, not with the fork."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        atexit.unregister(self.stop)


@cache
def ready_python() -> ReadyPython:
    """This process's ready process, started in the background on the first call. OSError if it cannot be started."""
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
    command = join([sys.executable, "-IS", python_forwarder.__file__, sys.executable, str(door)])
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
            start_new_session=True,  # Ctrl-C goes to the driver only
        )
    return ReadyPython(program, process)


def serve(listener: socket.socket) -> None:
    """Fork a child for every call, until the driver has exited."""
    for module in WANTED:
        with suppress(Exception):  # a worker that needs the module gets the error when it imports it
            import_module(module)
    gc.freeze()
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # see module docstring
    # No wait() for children: each child sends its exit code to `python_forwarder`.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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
    """Continue as the interpreter that Spark asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    call = _receive(connection)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.path[:] = _search_path(call["folder"])
    # Unbuffered, as Spark expects: workers may be killed before they could flush their output.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    kind, what, *words = call["words"]
    sys.argv = [kind, *words]
    connection.sendall(NUMBER.pack(os.getpid()))
    os.register_at_fork(after_in_child=connection.close)  # must close when this process ends, not its workers
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
        sys.exit("the caller has closed its connection")
    for own, given in enumerate(files):
        os.dup2(given, own)
        os.close(given)
    (length,) = NUMBER.unpack(size)
    told: Mapping[str, Any] = json.loads(connection.recv(length, socket.MSG_WAITALL))
    return told


def _search_path(folder: str) -> list[str]:
    """The module search path of a new interpreter with the current environment variables."""
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
        if os.getpid() == own:  # not in a forked child
            shutil.rmtree(sys.argv[2], ignore_errors=True)  # a killed driver could not remove it
