"""A PostgreSQL of our own, for as long as the tests run."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def postgres_bin() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    return found[-1].parent


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """A server of our own, reached by a socket in its folder; run by another user where we are root, as it wants."""
    tools = postgres_bin()
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="tailrace-pg-"))
    if user:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    run: dict[str, Any] = {"user": user, "cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([tools / "initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync"], **run)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    subprocess.run([tools / "pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start"], **run)
    yield f"host={folder} user=tester dbname=postgres"
    subprocess.run([tools / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)
    shutil.rmtree(folder)
