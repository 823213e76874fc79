"""Plants a bug: replaces a function or attribute of the code under test for as long as a context lasts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Mutant = Callable[[], AbstractContextManager[None]]


@contextmanager
def replaced(owner: Any, name: str, new: object) -> Iterator[None]:
    right = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, right)
