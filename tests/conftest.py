"""What all tests share: the keeper of the interop ledger, which has to live where the reports of all workers arrive."""

import hypothesis
import pytest

from tests.interop.ledger import LedgerKeeper

# A shared machine may stall any example; that is no defect of what is tested.
hypothesis.settings.register_profile("tailrace", deadline=None)
hypothesis.settings.load_profile("tailrace")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LedgerKeeper(), "interop-ledger")
