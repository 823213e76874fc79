"""Words that have no place in the tree: empty names, promises without an issue, paths of somebody's machine."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

from checks.finding import Finding
from checks.tree import Source

BANNED: Final = ("util", "utils", "helper", "helpers", "manager", "common")
PROMISE: Final = re.compile(r"(?<!`)\b(TODO|FIXME|XXX)\b(?! ?\(?#\d+)")
MACHINE_PATH: Final = re.compile(r"(?<![\w.~/-])/(?:work|root|home/\w+|Users/\w+)/")
WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def empty_names(source: Source) -> list[Finding]:
    """Files, folders, classes and functions that are called for nothing in particular."""
    named = [(0, part) for part in source.path.split("/")]
    if source.is_python:
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        named += [(node.lineno, node.name) for node in source.nodes if isinstance(node, kinds)]
    return [
        Finding(source.path, line, f"the name {name} says {said!r}", "Say what it is in the words of the domain.")
        for line, name in named
        for said in [found.lower() for found in WORD.findall(name)]
        if said in BANNED
    ]


def promises(source: Source) -> list[Finding]:
    """A promise in a comment or in prose that names no issue."""
    return [
        Finding(source.path, line, f"{found[1]} without an issue number", f"Do it now, or write {found[1]} #123.")
        for line, text in _prose(source)
        if (found := PROMISE.search(text))
    ]


def machine_paths(source: Source) -> list[Finding]:
    return [
        Finding(source.path, line, f"names a path of one machine: {found[0]}", "Use a path relative to the checkout.")
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
