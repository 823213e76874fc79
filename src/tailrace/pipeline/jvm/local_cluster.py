"""`local-cluster[executors,cores,megabytes]`: Spark executors as separate processes, all on this machine.

Tests use this mode to see what a cluster does when an executor dies. The driver's JVM starts the executors from
SPARK_HOME and leaves their folders there, which would be inside the installed package. So SPARK_HOME is set to a
temporary folder of this process that holds only a link to the jars. Python workers then import Spark from where the
driver does, not from a zip without byte code.
"""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tailrace.pipeline.jvm.gateway import spark_jars

PREFIX: Final = "local-cluster["


def cluster_variables() -> dict[str, str]:
    """The environment variables for the driver's JVM."""
    home = Path(tempfile.mkdtemp(prefix="tailrace-local-cluster-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "jars").symlink_to(spark_jars())
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala_version()}


def scala_version() -> str:
    """2.13 for spark-core_2.13-4.3.0.jar. Spark's scripts normally set this version, but they are not used here."""
    core = next(spark_jars().glob("spark-core_*.jar"))
    return core.name.removeprefix("spark-core_").partition("-")[0]
