"""Rules about whole files: their size in bytes, whitespace in prose, and a docstring in every module."""

import ast
from typing import Final

from checks.finding import Finding
from checks.tree import Source

FILE_MAX_BYTES: Final = 1024 * 1024
PROSE: Final = (".md", ".rst", ".txt", ".toml", ".yaml", ".yml")


def file_too_large(source: Source) -> list[Finding]:
    if len(source.data) <= FILE_MAX_BYTES:
        return []
    wrong = f"has {len(source.data):,} bytes; at most {FILE_MAX_BYTES:,} are allowed"
    return [Finding(source.path, 0, wrong, "Generate it in the test or the build that needs it; do not commit it.")]


def untidy_whitespace(source: Source) -> list[Finding]:
    if not source.path.endswith(PROSE):
        return []
    found = [
        Finding(source.path, line, "a tab" if "\t" in text else "trailing spaces", "Remove them.")
        for line, text in enumerate(source.lines, 1)
        if "\t" in text or text != text.rstrip()
    ]
    if source.text and not source.text.endswith("\n"):
        found.append(Finding(source.path, len(source.lines), "no newline at the end of the file", "Add a newline."))
    return found


def missing_docstring(source: Source) -> list[Finding]:
    if not source.is_python or not source.path.startswith(("src/", "checks/")) or ast.get_docstring(source.syntax):
        return []
    return [Finding(source.path, 1, "has no docstring", "Say what the module is for, and its theory if it has one.")]
