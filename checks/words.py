"""Rules about words: no vague names, no TODO without an issue number, no paths of one machine."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

from checks.finding import Finding
from checks.tree import Source

BANNED: Final = ("util", "utils", "helper", "helpers", "manager", "common")
TODO_WITHOUT_ISSUE: Final = re.compile(r"(?<!`)\b(TODO|FIXME|XXX)\b(?! ?\(?#\d+)")
MACHINE_PATH: Final = re.compile(r"(?<![\w.~/-])/(?:work|root|home/\w+|Users/\w+)/")
WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def vague_names(source: Source) -> list[Finding]:
    """Files, folders, classes and functions whose names contain a banned word."""
    named = [(0, part) for part in source.path.split("/")]
    if source.is_python:
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        named += [(node.lineno, node.name) for node in source.nodes if isinstance(node, kinds)]
    return [
        Finding(source.path, line, f"the name {name} contains {word!r}", "Say what it is in the words of the domain.")
        for line, name in named
        for word in [found.lower() for found in WORD.findall(name)]
        if word in BANNED
    ]


def todo_without_issue(source: Source) -> list[Finding]:
    """TODO, FIXME or XXX in a comment or in prose without an issue number."""
    return [
        Finding(source.path, line, f"{found[1]} without an issue number", f"Do it now, or write {found[1]} #123.")
        for line, text in _prose(source)
        if (found := TODO_WITHOUT_ISSUE.search(text))
    ]


def machine_paths(source: Source) -> list[Finding]:
    return [
        Finding(source.path, line, f"contains a path of one machine: {found[0]}", "Use a path in the checkout.")
        for line, text in enumerate(source.lines, 1)
        if (found := MACHINE_PATH.search(text))
    ]


def _prose(source: Source) -> Iterator[tuple[int, str]]:
    if not source.is_python:
        yield from enumerate(source.lines, 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
