"""A finding: what is wrong, where, and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    path: str  # from the root of the checkout, with slashes
    line: int  # 0: the file as a whole
    wrong: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.wrong}\n    {self.remedy}"
