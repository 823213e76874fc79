"""Parameters of the queue API: from the query, a form or a JSON object, as the clients of its users send them."""

import re
from collections.abc import Mapping
from typing import Any, Final

from tailrace.doors.http.errors import HttpError
from tailrace.doors.http.messages import FORM, Request

INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


class Parameters:
    """Each getter raises HttpError 400 with a sentence about its parameter."""

    def __init__(self, request: Request) -> None:
        self._values: dict[str, Any] = dict(request.query)
        if request.body:
            for name, value in _body(request).items():
                if name in self._values and self._values[name] != value:
                    raise HttpError(400, f"parameter {_safe(name)} is in the query and in the body, with two values")
                self._values[name] = value

    def text(self, *names: str) -> str:
        """The text of the parameter that has one of these names."""
        value = self.optional_text(*names)
        if value is None:
            raise HttpError(400, f"parameter {names[0]} is missing")
        return value

    def optional_text(self, *names: str) -> str | None:
        value = self._first(names)
        if value is not None and not isinstance(value, str):
            raise HttpError(400, f"parameter {names[0]} must be text")
        return value

    def integer(self, name: str) -> int:
        value = self.optional_integer(name)
        if value is None:
            raise HttpError(400, f"parameter {name} is missing")
        return value

    def optional_integer(self, name: str, low: int = 0, high: int = 2**53) -> int | None:
        value = self._first([name])
        if isinstance(value, str) and INTEGER.fullmatch(value):
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
            return value
        raise HttpError(400, f"parameter {name} must be an integer from {low} to {high}")

    def _first(self, names: Any) -> Any:
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)


def _body(request: Request) -> Mapping[str, Any]:
    if request.content_type == FORM and not request.body.lstrip().startswith(b"{"):  # what curl -d calls JSON, too
        return request.form()
    value = request.json()
    if not isinstance(value, dict):
        raise HttpError(400, "the body must be a JSON object with the parameters")
    return value


def _safe(name: str) -> str:
    return name[:40]
