"""The base of all faults, which are listed in `model.faults`."""

from typing import ClassVar

from tailrace.model.limits import fault_text_max_chars


class Fault(Exception):
    """The base of all faults; `str(fault)` is a sentence for the person who meets it."""

    retry: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        if len(self.message) > fault_text_max_chars:
            return self.message[:fault_text_max_chars] + "…"
        return self.message
