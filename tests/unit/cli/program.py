"""Run the program `tailrace` in a process of its own, until it ends.

Each command is forked from a process that has imported its modules already (multiprocessing's fork server): importing
typer, rich and the Kafka client every time would take ten times as long as most commands.
"""

import multiprocessing
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

DEADLINE_S = 60.0
DEAD_ADDRESS = "127.0.0.1:1"  # an address without a broker
PRELOADED_MODULES = ["tailrace.cli.app", "confluent_kafka.admin", "rich.table", "rich.progress"]


class Ran(NamedTuple):
    code: int | None
    out: str
    err: str


Program = Callable[..., Ran]


def run_tailrace(*words: str, stdin: str = "", bootstrap: str = DEAD_ADDRESS, **variables: str) -> Ran:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED_MODULES)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text(stdin if stream.name == "in" else "")
        variables_set = environment(TAILRACE_BOOTSTRAP=bootstrap, **variables)
        process = context.Process(target=_run_main, args=(words, variables_set, streams))
        process.start()
        process.join(DEADLINE_S)
        if process.exitcode is None:
            process.kill()
            process.join()
        return Ran(process.exitcode, *(stream.read_text() for stream in streams[1:]))


def _run_main(words: tuple[str, ...], variables: Mapping[str, str], streams: list[Path]) -> None:
    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 open until the process ends
    from tailrace.cli.main import main

    sys.exit(main(words))


def start_tailrace(*words: str, folder: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
    """Start the program as a user would; the caller must end it."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "tailrace", *words],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        cwd=folder,
        env=environment(**variables),
        start_new_session=True,  # a test's Ctrl-C must reach only this process
    )


@contextmanager
def running_tailrace(
    *words: str, folder: Path | None = None, **variables: str
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start the program, and kill it in the end. With it comes the line that it prints when it is ready."""
    process = start_tailrace(*words, folder=folder, **variables)
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], DEADLINE_S)
        yield process, process.stdout.readline() if ready else ""
    finally:
        process.kill()
        process.communicate()


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process without TAILRACE_ variables, which would change settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
    return clean | variables
