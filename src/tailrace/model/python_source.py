"""Builds the source of a Python function: its lines, and the values it refers to by name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any


class Source:
    def __init__(self, names: Mapping[str, object] = MappingProxyType({})) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = dict(names)
        self._fresh = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, heading: str) -> Iterator[None]:
        self.line(heading)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        """A local name that is not used yet."""
        self._fresh += 1
        return f"{hint}_{self._fresh}"

    def bind(self, hint: str, value: object) -> str:
        """A name that refers to `value` in the function."""
        name = self.fresh(hint.upper())
        self._names[name] = value
        return name

    def build(self, name: str, title: str) -> Any:
        """Compile the lines, and return the function `name` that they define."""
        namespace = dict(self._names)
        exec(compile("\n".join(self._lines), f"<{title}>", "exec"), namespace)
        return namespace[name]
