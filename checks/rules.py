"""Runs the project's own rules over the whole tree."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from checks.files import file_too_large, missing_docstring, untidy_whitespace
from checks.finding import Finding
from checks.order import depends_on_set_order
from checks.ports import bypasses_ports
from checks.purity import impure_imports
from checks.sizes import too_large
from checks.tree import Source, sources
from checks.words import machine_paths, todo_without_issue, vague_names

FILE_RULES: Final[tuple[Callable[[Source], list[Finding]], ...]] = (
    bypasses_ports,
    impure_imports,
    depends_on_set_order,
    vague_names,
    todo_without_issue,
    machine_paths,
    file_too_large,
    untidy_whitespace,
    missing_docstring,
)


def findings(root: Path) -> list[Finding]:
    files = sources(root)
    found = [finding for source in files for rule in FILE_RULES for finding in rule(source)]
    return sorted(found + too_large(files))


def main() -> int:
    found = findings(Path.cwd())
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
