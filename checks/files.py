"""Rules about whole files: their weight, the white space of prose, and that each module says what it is for."""

import ast
from typing import Final

from checks.finding import Finding
from checks.tree import Source

FILE_MAX_BYTES: Final = 1024 * 1024
PROSE: Final = (".md", ".rst", ".txt", ".toml", ".yaml", ".yml")


def too_heavy(source: Source) -> list[Finding]:
    if len(source.data) <= FILE_MAX_BYTES:
        return []
    wrong = f"has {len(source.data):,} bytes; the most is {FILE_MAX_BYTES:,}"
    return [Finding(source.path, 0, wrong, "Make it in the test or the build that needs it, and keep it out of git.")]


def untidy_prose(source: Source) -> list[Finding]:
    if not source.path.endswith(PROSE):
        return []
    found = [
        Finding(source.path, line, "a tab" if "\t" in text else "spaces at the end of the line", "Remove them.")
        for line, text in enumerate(source.lines, 1)
        if "\t" in text or text != text.rstrip()
    ]
    if source.text and not source.text.endswith("\n"):
        found.append(Finding(source.path, len(source.lines), "the last line does not end", "End it with a newline."))
    return found


def unexplained_module(source: Source) -> list[Finding]:
    if not source.is_python or not source.path.startswith(("src/", "checks/")) or ast.get_docstring(source.syntax):
        return []
    return [
        Finding(source.path, 1, "has no docstring", "Open with what the module is for, and its theory if it has one.")
    ]
