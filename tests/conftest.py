"""What all tests share: the keeper of the interop ledger, which has to live where the reports of all workers arrive."""

import pytest

from tests.interop.ledger import LedgerKeeper


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LedgerKeeper(), "interop-ledger")
