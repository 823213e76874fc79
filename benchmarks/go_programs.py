"""Programs in Go, built once into the user's cache directory: our load of `go/`, and the server of NATS."""

import os
import subprocess
from pathlib import Path
from typing import Final
from zlib import crc32

from benchmarks.fetched import Missing, cache_folder, need, put_in_place

SOURCES: Final = Path(__file__).parent / "go"
NATS_SERVER: Final = "github.com/nats-io/nats-server/v2"


def programs() -> Path:
    """The folder with `load` and `nats-server`."""
    need("the load of other queues", "go")
    sources = sorted(SOURCES.iterdir())
    print_of_all = crc32(b"".join(source.name.encode() + source.read_bytes() for source in sources))
    wanted = cache_folder() / "benchmarks" / f"go-{print_of_all:08x}"
    if not wanted.exists():
        made = wanted.with_suffix(f".{os.getpid()}")
        made.mkdir(parents=True)
        _go("mod", "download")
        _go("build", "-o", str(made / "load"), ".")
        _go("build", "-o", str(made / "nats-server"), NATS_SERVER)
        put_in_place(made, wanted)
    return wanted


def _go(*arguments: str) -> None:
    own = {"GOMODCACHE": str(cache_folder() / "go-modules"), "GOFLAGS": "-modcacherw"}
    command = ["go", *arguments]
    ran = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, env=os.environ | own, check=False)
    if ran.returncode:
        raise Missing(f"`{' '.join(command[:3])}` failed:\n{ran.stderr[-1000:]}")
