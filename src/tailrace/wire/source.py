"""Python source under construction: the lines of one function, and the values it refers to by name."""

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names: dict[str, object] = {}
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
        """A local name that nothing else uses."""
        self._fresh += 1
        return f"{hint}_{self._fresh}"

    def bind(self, hint: str, value: object) -> str:
        """A name by which the function can refer to `value`."""
        name = self.fresh(hint.upper())
        self._names[name] = value
        return name

    def know(self, *functions: types.FunctionType) -> None:
        """Functions that the source calls by their own names."""
        for function in functions:
            self._names[function.__name__] = function

    def build(self, name: str, title: str) -> Any:
        """The function `name` that the lines define."""
        namespace = dict(self._names)
        exec(compile("\n".join(self._lines), f"<{title}>", "exec"), namespace)
        return namespace[name]
