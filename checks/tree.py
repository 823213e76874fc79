"""The files that the rules check: those that git tracks or would track, each read once.

New files count before their first commit; ignored files never count. Outside a git checkout (an unpacked source
archive) all files count except hidden folders and caches.
"""

import ast
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

CACHES: Final = ("__pycache__", "build", "dist", "tailrace-data", "tailrace-cluster")


@dataclass(frozen=True)
class Source:
    """One file. `text` is empty if the file is not UTF-8."""

    path: str  # from the root of the checkout, with slashes
    data: bytes

    @cached_property
    def text(self) -> str:
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return ""

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def syntax(self) -> ast.Module:
        """Only for Python that parses: ruff reports syntax errors before any rule runs."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All syntax nodes, cached because most rules look at every node and walking the tree is slow."""
        return list(ast.walk(self.syntax))

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def room(self) -> str:
        """`log` for src/tailrace/log/segment.py; empty outside the package, for its top level, and for data."""
        parts = self.path.split("/")
        return parts[2] if self.is_python and parts[:2] == ["src", "tailrace"] and len(parts) > 3 else ""


def sources(root: Path) -> list[Source]:
    paths = _known_to_git(root) if (root / ".git").exists() else _listed_files(root)
    # A tracked file may be deleted without a commit yet; the target of a symbolic link is checked itself.
    files = [path for path in paths if (root / path).is_file() and not (root / path).is_symlink()]
    return [Source(path, (root / path).read_bytes()) for path in sorted(files)]


def _known_to_git(root: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return list(dict.fromkeys(path for path in listed.split("\0") if path))


def _listed_files(root: Path) -> list[str]:
    relative = (path.relative_to(root) for path in root.rglob("*"))
    return [
        path.as_posix() for path in relative if not any(part.startswith(".") or part in CACHES for part in path.parts)
    ]
