"""The program `tailrace`, run to its end in a process of its own.

A process that has its imports done already is forked for each command (multiprocessing's fork server): importing
typer, rich and the Kafka client anew would take ten times as long as most commands do.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

DEADLINE_S = 60.0
NOBODY = "127.0.0.1:1"  # an address where no broker is
IMPORTED_BEFORE = ["tailrace.cli.app", "confluent_kafka.admin", "rich.table", "rich.progress"]


class Ran(NamedTuple):
    code: int | None
    out: str
    err: str


Program = Callable[..., Ran]


def run_tailrace(*words: str, stdin: str = "", bootstrap: str = NOBODY, **variables: str) -> Ran:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED_BEFORE)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text(stdin if stream.name == "in" else "")
        told = environment(TAILRACE_BOOTSTRAP=bootstrap, **variables)
        process = context.Process(target=_be_tailrace, args=(words, told, streams))
        process.start()
        process.join(DEADLINE_S)
        if process.exitcode is None:
            process.kill()
            process.join()
        return Ran(process.exitcode, *(stream.read_text() for stream in streams[1:]))


def _be_tailrace(words: tuple[str, ...], variables: Mapping[str, str], streams: list[Path]) -> None:
    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 they live as long as we do
    from tailrace.cli.main import main

    sys.exit(main(words))


def start_tailrace(*words: str, folder: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
    """The program under way, started as people start it; whoever starts it ends it."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "tailrace", *words],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        cwd=folder,
        env=environment(**variables),
        start_new_session=True,  # a Ctrl-C that a test sends is for it alone
    )


def environment(**variables: str) -> dict[str, str]:
    """What this process has, without settings of a broker that somebody may have put there."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
    return clean | variables
