"""Two minor versions of Spark are supported: what holds for the one that is installed holds for the other."""

import os
import sys

import pyspark
import pytest

from tests.pipeline.programs import fetched, root, run

SUPPORTED = ("pyspark>=4.2,<4.3", "pyspark>=4.3,<4.4")
SUITE_TIMEOUT_S = 1800.0


@pytest.mark.long
def test_the_other_version() -> None:
    """The pipeline's tests, once more, with the other one's jars and Python."""
    is_newer = pyspark.__version__.startswith("4.3.")
    folder = fetched(SUPPORTED[0 if is_newer else 1])
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path}
    version = run([sys.executable, "-c", "import pyspark; print(pyspark.__version__)"], variables, root)
    assert version.startswith("4.2." if is_newer else "4.3.")
    command = [sys.executable, "-m", "pytest", "tests/pipeline", "-p", "no:cacheprovider", "-m", "not long"]
    printed = run(command, variables, root, SUITE_TIMEOUT_S)
    assert "passed" in printed
