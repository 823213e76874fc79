"""What all tests share: the keeper of the interop ledger, which has to live where the reports of all workers arrive,
the order of tests, and a Ctrl-C that reaches the programs that tests run."""

import signal

import hypothesis
import pytest

from tests.interop.ledger import LedgerKeeper

# A shared machine may stall any example; that is no defect of what is tested.
hypothesis.settings.register_profile("tailrace", deadline=None)
hypothesis.settings.load_profile("tailrace")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control starts background commands that ignore SIGINT, and so would every child.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LedgerKeeper(), "interop-ledger")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests come first: the first worker begins with all of them, and others steal from the end, so that
    only one starts a JVM."""
    items.sort(key=lambda item: "spark" not in item.keywords)
