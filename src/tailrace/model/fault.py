"""The base of all faults, which are listed in `model.faults`."""

from typing import ClassVar

from tailrace.model.limits import FAULT_TEXT_MAX_CHARS


class Fault(Exception):
    """The base of all faults; `str(fault)` is a sentence for the person who meets it."""

    retry: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        if len(self.message) > FAULT_TEXT_MAX_CHARS:
            return self.message[:FAULT_TEXT_MAX_CHARS] + "…"
        return self.message
