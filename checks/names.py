"""What a dotted name in a module means, whatever it was imported as.

`import os as o; o.path.exists` and `from os.path import exists; exists` both mean `os.path.exists`.
Names bound by anything but an import are left alone: a local variable called `time` is not the module.
"""

import ast
from collections.abc import Iterator, Sequence


def imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every absolute import, as its line and the dotted name it brings."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def meanings(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Local name to the dotted name it was imported from."""
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
    """`os.path.exists` for an expression that means it; empty when it does not begin with an imported name."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute):
        left = dotted(node.value, known)
        return f"{left}.{node.attr}" if left else ""
    return ""


def used(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every imported dotted name that is used, in its longest form, and the line it is used in."""
    known = meanings(nodes)
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inner:
            name = dotted(node, known)
            if name:
                yield node.lineno, name


def within(name: str, prefix: str) -> bool:
    """Whether a dotted name is `prefix` or lies below it."""
    return name == prefix or name.startswith(prefix + ".")
