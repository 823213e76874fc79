"""The gate: runs every check, even if one fails, and lists at the end which failed and how to fix them."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

FOLDERS: Final = ("src", "checks", "tests", "benchmarks", "examples")


class Check(NamedTuple):
    name: str
    command: tuple[str, ...]
    remedy: str


def gate(root: Path) -> list[Check]:
    tools = Path(sys.executable).parent
    python = tuple(folder for folder in FOLDERS if any((root / folder).rglob("*.py")))
    return [
        Check(
            "lint",
            (f"{tools}/ruff", "check", "--quiet", "--output-format=concise"),
            "ruff check --fix fixes some of these",
        ),
        Check("format", (f"{tools}/ruff", "format", "--check", "--output-format=concise"), "ruff format fixes these"),
        Check("types", (f"{tools}/mypy", "--strict", "--no-error-summary", *python), "annotate, or narrow the type"),
        Check("layers", (f"{tools}/lint-imports",), "move the code down, or pass it in: see ARCHITECTURE.md"),
        Check("rules", (sys.executable, "-m", "checks.rules"), "each finding says what to do; see CONTRIBUTING.md"),
    ]


def failed(check: Check, root: Path) -> bool:
    """Run one check and return whether it failed; its output is printed only then."""
    began = time.monotonic()
    done = subprocess.run(check.command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{check.name:8} {'FAILED' if done.returncode else 'ok':6} {time.monotonic() - began:5.1f} s", flush=True)
    if done.returncode:
        print(done.stdout.rstrip(), flush=True)
    return done.returncode != 0


def main() -> int:
    root = Path.cwd()
    broken = [check for check in gate(root) if failed(check, root)]
    for check in broken:
        print(f"{check.name} failed: {check.remedy}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
