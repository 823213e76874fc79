"""The source of 0.1.0, unpacked once for all tests of a worker; without this repository's history they skip."""

import json
from pathlib import Path

import pytest

from tests.upgrade.releases import OLD_PROGRAM, NoHistory, run_old, unpack_0_1_0


@pytest.fixture(scope="session")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return unpack_0_1_0(tmp_path_factory.mktemp("0.1.0"))
    except NoHistory as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def declared(old_source: Path) -> dict[str, dict[str, int]]:
    """The newest versions that 0.1.0 knows of `records`, peer `messages` and `forwarded` requests."""
    found: dict[str, dict[str, int]] = json.loads(run_old(old_source, OLD_PROGRAM, "declared"))
    return found
