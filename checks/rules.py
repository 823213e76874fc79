"""The rules of our own, each run over the whole tree."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from checks.files import too_heavy, unexplained_module, untidy_prose
from checks.finding import Finding
from checks.order import depends_on_set_order
from checks.ports import touches_the_world
from checks.purity import knows_the_shell
from checks.sizes import too_large
from checks.tree import Source, sources
from checks.words import empty_names, machine_paths, promises

OF_EACH_FILE: Final[tuple[Callable[[Source], list[Finding]], ...]] = (
    touches_the_world,
    knows_the_shell,
    depends_on_set_order,
    empty_names,
    promises,
    machine_paths,
    too_heavy,
    untidy_prose,
    unexplained_module,
)


def findings(root: Path) -> list[Finding]:
    files = sources(root)
    found = [finding for source in files for rule in OF_EACH_FILE for finding in rule(source)]
    return sorted(found + too_large(files))


def main() -> int:
    found = findings(Path.cwd())
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
