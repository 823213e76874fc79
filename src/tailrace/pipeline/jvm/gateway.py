"""Start a local driver's JVM without Spark's launcher, as the launcher would except for three things.

- SPARK_HOME is not in the JVM's environment: if it were, Python workers would import Spark from a zip without byte
  code, which doubles the time of a session's first query.
- There is no shell, and no second JVM that only computes the command line of the first.
- The classes come from the AppCDS archive, if there is one (see `class_archive`).

While the JVM starts, this process imports PySpark, which saves a quarter of a second on a laptop.

The JVM exits when its standard input is closed, that is when this process ends in any way. It writes its port to a
file.
"""

import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tailrace.pipeline.jvm.java import Java

START_TIMEOUT_S: Final = 120.0
POLL_S: Final = 0.02
OPENED_PACKAGES: Final = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]  # the packages that Spark's launcher opens (--add-opens)
NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_PORT: Final = struct.Struct(">i")


class JvmFailed(RuntimeError):
    """The JVM did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    process: "subprocess.Popen[bytes]"
    port: int
    secret: str


def spark_jars() -> Path:
    """The folder where pip installed Spark's jars."""
    found = find_spec("pyspark")  # not imported: the import is slow, and the JVM has to be started first
    if found is None or found.origin is None:
        raise ModuleNotFoundError('there is no pyspark; try: pip install "tailrace[spark]"', name="pyspark")
    return Path(found.origin).parent / "jars"


def launch(
    java: Java, options: Sequence[str], settings: Mapping[str, str], variables: Mapping[str, str] = NO_VARIABLES
) -> Gateway:
    """Start a JVM that is driven by this process; `variables` are added to the JVM's environment."""
    with tempfile.TemporaryDirectory(prefix="tailrace-jvm-") as folder:
        told = Path(folder) / "address"
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        environment |= {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(told), "SPARK_CONNECT_MODE": "0", **variables}
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # a local session needs no other network address
        process = subprocess.Popen(
            [*_command(java, options, settings)],
            stdin=subprocess.PIPE,
            env=environment,
            preexec_fn=_ignore_interrupt,
        )
        import_module("pyspark.sql")
        _wait_for(told, process)
        said = told.read_bytes()
    (port,) = _PORT.unpack_from(said)
    return Gateway(process=process, port=port, secret=said[2 * _PORT.size :].decode())


def _command(java: Java, options: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    memory = settings.get("spark.driver.memory", "1g")
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [
        str(java.program), "-cp", f"{spark_jars()}/*", f"-Xmx{memory}", "-XX:+IgnoreUnrecognizedVMOptions", *options,
        *opens, "-Dio.netty.tryReflectionSetAccessible=true", "--enable-native-access=ALL-UNNAMED",
        "org.apache.spark.deploy.SparkSubmit", *confs, "pyspark-shell",
    ]  # fmt: skip


def _wait_for(told: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not told.is_file():  # Spark writes the file under a temporary name, then renames it
        if process.poll() is not None:
            raise JvmFailed(f"Spark's JVM ended with code {process.returncode}; what it printed says why")
        if time.monotonic() > deadline:
            process.kill()
            raise JvmFailed(f"Spark's JVM was not up after {START_TIMEOUT_S:g} s, and was ended")
        time.sleep(POLL_S)


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the driver, which then stops the JVM
