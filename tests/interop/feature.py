"""A feature: one sentence of the ledger, tried with every client that offers what it uses.

    @feature("read from any offset", "reader")
    def test_any_offset(client: Client, topic: str) -> None: ...

Words in braces are filled from the test's other parameters, so `{compression}` makes one line of each compression.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from tests.interop.client import Client
from tests.interop.drivers import DRIVERS

Test = TypeVar("Test", bound=Callable[..., None])


def feature(sentence: str, *uses: str) -> Callable[[Test], Test]:
    able = [driver for driver in DRIVERS if all(driver.offers(what) for what in uses)]
    assert able, f"no client offers {uses}"

    def mark(test: Test) -> Test:
        pytest.mark.foreign(test)
        pytest.mark.feature(sentence)(test)
        pytest.mark.parametrize("client", each_of(able), indirect=True)(test)
        return test

    return mark


def each_of(able: Sequence[type[Client]]) -> list[pytest.ParameterSet]:
    """The clients as parameters of a test; what needs a toolchain makes it a long one."""
    return [
        pytest.param(driver, id=driver.name, marks=[pytest.mark.long] if driver.toolchain else []) for driver in able
    ]


def named(parameter: object) -> str:
    """How a parameter reads in a sentence and in a test's name."""
    return parameter.name if isinstance(parameter, type) and issubclass(parameter, Client) else str(parameter)
