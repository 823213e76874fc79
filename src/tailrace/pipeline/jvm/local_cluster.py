"""`local-cluster[executors,cores,megabytes]`: Spark's executors as processes of their own, all on this machine.

It is how tests see what a cluster does when an executor dies. The driver's JVM starts the executors from where Spark
is at home, and leaves their folders there: in the installed package, if it were told the truth. So it gets a home of
this process's own that holds nothing but the way to the jars; Python workers then import Spark from where the driver
does, not from a zip without byte code.
"""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tailrace.pipeline.jvm.gateway import spark_jars

PREFIX: Final = "local-cluster["


def cluster_variables() -> dict[str, str]:
    """What the environment of the driver's JVM has to say."""
    home = Path(tempfile.mkdtemp(prefix="tailrace-local-cluster-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "jars").symlink_to(spark_jars())
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala_version()}


def scala_version() -> str:
    """2.13 of spark-core_2.13-4.3.0.jar: Spark's scripts tell it, and there are none here."""
    core = next(spark_jars().glob("spark-core_*.jar"))
    return core.name.removeprefix("spark-core_").partition("-")[0]
