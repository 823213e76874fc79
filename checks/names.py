"""Resolution of names to the dotted names they were imported from.

`import os as o; o.path.exists` and `from os.path import exists; exists` both resolve to `os.path.exists`.
Names that are not bound by an import are ignored: a local variable called `time` is not the module.
"""

import ast
from collections.abc import Iterator, Sequence


def imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every absolute import, as its line and the dotted name it imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def imported_names(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Maps each local name to the dotted name it was imported from."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                known[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    """The dotted name of an expression, such as `os.path.exists`; empty if it does not start with an imported name."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute):
        left = dotted(node.value, known)
        return f"{left}.{node.attr}" if left else ""
    return ""


def used(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every use of an imported name, as its line and the longest dotted name."""
    known = imported_names(nodes)
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inner:
            name = dotted(node, known)
            if name:
                yield node.lineno, name


def within(name: str, prefix: str) -> bool:
    """Whether a dotted name is `prefix` or starts with `prefix.`."""
    return name == prefix or name.startswith(prefix + ".")
