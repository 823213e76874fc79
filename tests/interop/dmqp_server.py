"""A DMQP server as its users start it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMPAT = Path(__file__).parents[2] / "compat" / "dmqp"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "SHELL": "/bin/bash",
    "TAILRACE_FSYNC": "never",
}


@contextmanager
def partition(folder: Path, *options: str) -> Iterator[str]:
    """Start `./partition/partition` as its users do, in the shell of `docker.sh`; the port of DMQP."""
    shell = subprocess.Popen(
        [str(COMPAT / "scripts" / "docker.sh")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    try:
        shell.stdin.write(f"exec ./partition/partition --data-dir '{folder}' {' '.join(options)}\n")
        shell.stdin.close()
        ready = shell.stdout.readline().split()
        assert ready[:1] == ["ready"], ready
        (address,) = [one.removeprefix("dmqp=") for one in ready if one.startswith("dmqp=")]
        yield address.rpartition(":")[2]
    finally:
        shell.send_signal(signal.SIGTERM)
        shell.wait(60)
        shell.stdout.close()
