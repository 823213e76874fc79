"""A Spark session that starts with nothing installed but `tailrace[spark]`, and starts fast.

`session` chooses the Java, runs Python workers with this environment's Python, and restricts a local session to this
machine: no web UI, loopback addresses only, and shuffle partitions to match its CPUs. Settings from the caller override
these defaults. For a master that is not local, Spark's own launcher starts the JVM, with the same Java and Python.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.jvm import local_cluster, ml_functions
from tailrace.pipeline.jvm.class_archive import archive_options, build_in_background
from tailrace.pipeline.jvm.gateway import Gateway, launch
from tailrace.pipeline.jvm.java import Java, find_java
from tailrace.pipeline.jvm.ready_python import ready_python
from tailrace.pipeline.jvm.spark_log import log_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_VARIABLE: Final = "PYSPARK_PYTHON"
WORKER_SETTINGS: Final = ("spark.executorEnv.", "spark.pyspark.")  # these make workers differ from this process
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
LOCAL_SETTINGS: Final = MappingProxyType(
    {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }
)
DEFAULT_SETTINGS: Final = MappingProxyType(
    {
        "spark.sql.python.filterPushdown.enabled": "true",  # filters on offset, partition and time reach our source
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
)
QUICK_OPTIONS: Final = (
    "-XX:+UseSerialGC",  # other collectors start threads that a local session does not need
    # Startup calls very many methods a few thousand times each: compiling them with C2 would waste more than a second.
    # Loops matter later, and the C2 threshold for loops is unchanged.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    # Enough for startup and the first query, which half a dozen garbage collections would delay otherwise.
    "-XX:MetaspaceSize=256m",
    "-XX:NewSize=96m",
    # Map the archive at the address it was created for: relocating it means reading and changing all of it.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
)
BRIEF_OPTIONS: Final = ("-XX:TieredStopAtLevel=1",)


def session(
    name: str = "tailrace",
    *,
    master: str = "local[*]",
    settings: Mapping[str, str] = NO_SETTINGS,
    brief: bool = False,
    keep_classes: bool = True,
) -> "SparkSession":
    """The Spark session of this process, started if there is none.

    `brief` is for sessions that live for seconds, mainly tests: the JVM then compiles with C1 only, is up half a second
    earlier, and takes three times as long for long-running work.
    `keep_classes` lets the first session create the AppCDS archive in the background, which speeds up later sessions.
    A local session logs errors only, unless `spark.log.level` is set.
    """
    is_cluster = master.startswith(local_cluster.PREFIX)
    is_local = is_cluster or master == "local" or master.startswith("local[")
    may_wait = is_local and ml_functions.may_wait(settings)
    defaults = {
        **DEFAULT_SETTINGS,
        **(LOCAL_SETTINGS if is_local else {}),
        ml_functions.LOAD_EXTENSIONS_SETTING: "false" if may_wait else "true",
    }
    told = {**defaults, **settings, "spark.master": master}
    is_first = not is_started()
    with _workers_run(worker_python(settings, is_here=is_local and not is_cluster)):
        if is_first:
            told |= start_java(is_local=is_local, is_cluster=is_cluster, settings=told, brief=brief)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(name)
        for setting, value in told.items():
            builder = builder.config(setting, value)
        spark = builder.getOrCreate()
    if may_wait:
        ml_functions.register_with_import()
    if is_first and keep_classes and is_local and not is_cluster:
        build_in_background(find_java())
    return spark


def worker_python(settings: Mapping[str, str], *, is_here: bool) -> str:
    """The Python for Spark's workers: PYSPARK_PYTHON or this Python, through the ready process where possible."""
    chosen = os.environ.setdefault(PYTHON_VARIABLE, sys.executable)
    is_plain = chosen == sys.executable and not any(name.startswith(WORKER_SETTINGS) for name in settings)
    if is_here and is_plain and sys.platform == "linux":
        with suppress(OSError):  # no temporary folder, or programs in it cannot be executed
            return str(ready_python().program)
    return chosen


@contextmanager
def _workers_run(python: str) -> Iterator[None]:
    """Set PYSPARK_PYTHON while Spark starts, then restore it: `python` may stop working when this process ends."""
    usual = os.environ[PYTHON_VARIABLE]
    os.environ[PYTHON_VARIABLE] = python
    try:
        yield
    finally:
        os.environ[PYTHON_VARIABLE] = usual


def start_java(*, is_local: bool, is_cluster: bool, settings: Mapping[str, str], brief: bool) -> dict[str, str]:
    """Choose a Java, and start the JVM if the driver is local. Return additional settings for the session."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    length = BRIEF_OPTIONS if brief else ()
    options = [*archive_options(java), *length, *log_options(settings)]
    if is_cluster:
        of_executors = {"spark.executor.extraJavaOptions": " ".join((*QUICK_OPTIONS, *length)), **settings}
        start_gateway(java, options, of_executors, local_cluster.cluster_variables())
        return of_executors
    if is_local:
        start_gateway(java, options, settings)
    return {}


def is_started() -> bool:
    """Whether this process has a JVM. Does not import PySpark, as that is done while the JVM starts."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def start_gateway(
    java: Java,
    options: Sequence[str],
    settings: Mapping[str, str] = NO_SETTINGS,
    variables: Mapping[str, str] = NO_SETTINGS,
) -> Gateway:
    """Start a JVM and connect PySpark to it."""
    gateway = launch(java, [*QUICK_OPTIONS, *options], settings, variables)
    from pyspark import SparkContext

    found = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    os.environ.update(found)
    SparkContext._ensure_initialized()
    for variable in found:  # child processes must not connect to this JVM
        del os.environ[variable]
    SparkContext._gateway.proc = gateway.process
    return gateway


def warm_up() -> None:
    """Run a small typical query, so that its classes are loaded."""
    from pyspark.sql import functions

    spark = session(keep_classes=False)
    spark.dataSource.register(_one_row_source())
    rows = spark.read.format("one row").load()
    rows.unionByName(rows).groupBy("number").agg(functions.count("*")).collect()
    spark.stop()


def _one_row_source() -> type:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class OneRow(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (1,)

    class OneRowSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "one row"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: object) -> OneRow:
            return OneRow()

    return OneRowSource
