"""The size rule: a file has at most 500 lines, a function at most 65, not counting its docstring (ADR 0018).

There is no bound on medians or percentiles: such bounds made people split files by length instead of by idea.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from checks.finding import Finding
from checks.tree import Source

FILE_MAX_LINES: Final = 500
FUNCTION_MAX_LINES: Final = 65
SPLIT: Final = "Split it by idea: each part should have a theory of its own that fits in one docstring."


def too_large(files: Sequence[Source]) -> list[Finding]:
    return [finding for source in files if source.is_python for finding in _findings(source)]


def _findings(source: Source) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if lines > FILE_MAX_LINES:
        yield Finding(source.path, 0, f"has {lines} lines; at most {FILE_MAX_LINES} are allowed", SPLIT)
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = _length_without_docstring(node)
            if length > FUNCTION_MAX_LINES:
                wrong = f"{node.name} has {length} lines; at most {FUNCTION_MAX_LINES} are allowed"
                yield Finding(source.path, node.lineno, wrong, SPLIT)


def _length_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    documented = ast.get_docstring(function, clean=False) is not None
    return _length(function) - (_length(function.body[0]) if documented else 0)


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
