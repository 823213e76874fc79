"""What all tests share: the keeper of the interop ledger, which has to live where the reports of all workers arrive,
and the order of tests."""

import hypothesis
import pytest

from tests.interop.ledger import LedgerKeeper

# A shared machine may stall any example; that is no defect of what is tested.
hypothesis.settings.register_profile("tailrace", deadline=None)
hypothesis.settings.load_profile("tailrace")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LedgerKeeper(), "interop-ledger")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests come first: the first worker begins with all of them, and others steal from the end, so that
    only one starts a JVM."""
    items.sort(key=lambda item: "spark" not in item.keywords)
