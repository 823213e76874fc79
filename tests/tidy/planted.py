"""A source file with a planted violation."""

from textwrap import dedent

from checks.tree import Source


def planted(text: str, path: str = "src/tailrace/log/planted.py") -> Source:
    return Source(path, dedent(text).encode())
