"""An AppCDS archive of Spark's classes: loaded and verified once, then mapped into memory by later JVMs.

Half of a session's startup time is spent loading about fifteen thousand classes. A JVM can write its loaded classes to
an archive when it exits; the next JVM maps that file. Writing the archive slows a session down, so user sessions do not
write it. Instead, the first session starts a background process at the lowest priority
(`python -m tailrace.pipeline.jvm.class_archive`), which runs a small session and leaves the archive in the cache.

An archive works with one Java and one set of jars: its name identifies both. A JVM that cannot use the archive runs
without it. Archives are large, so creating one removes archives whose jars are gone: the lock file beside each archive
holds the path of the jars.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

from tailrace.pipeline.jvm.gateway import spark_jars
from tailrace.pipeline.jvm.java import Java, find_java
from tailrace.pipeline.jvm.wheel import cache_folder

LOWEST_PRIORITY: Final = 19
BUILD_TIMEOUT_S: Final = 600.0


def archive_path(java: Java) -> Path:
    jars = spark_jars()
    fits = crc32(f"{java.program} {jars} {len(list(jars.iterdir()))}".encode())
    return cache_folder() / "classes" / f"java-{java.version}-{fits:08x}.jsa"


def archive_options(java: Java) -> list[str]:
    """The JVM options for using the archive; empty if there is no archive yet."""
    path = archive_path(java)
    if not path.is_file():
        return []
    files = [str(base)] if (base := base_archive(java)) is not None else []
    return ["-XX:SharedArchiveFile=" + ":".join([*files, str(path)]), "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def base_archive(java: Java) -> Path | None:
    """The path of our base archive of Java's own classes; None if Java ships a base archive, as most do."""
    if (java.home / "lib" / "server" / "classes.jsa").is_file():
        return None
    return archive_path(java).with_suffix(".base")


def build_in_background(java: Java) -> None:
    """Create the archive in a background process, unless it exists or another process is creating it."""
    if archive_path(java).is_file():
        return
    subprocess.Popen(
        [sys.executable, "-m", "tailrace.pipeline.jvm.class_archive"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "JAVA_HOME": str(java.home)},
    )


def build(java: Java) -> Path | None:
    """Create the archive unless another process is creating it. Return the archive, or None if there is none."""
    path = archive_path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.with_suffix(".lock")) as alone:
        if alone and not path.is_file():
            remove_stale_archives(path.parent)
            for left_over in path.parent.glob(f"{path.name}-*"):  # from a build process that was killed
                left_over.unlink()
            _make_base(java)
            _make(java, path)
    return path if path.is_file() else None


def remove_stale_archives(folder: Path) -> None:
    """Remove the archives of Python environments whose Spark jars no longer exist."""
    for lock in folder.glob("*.lock"):
        jars = lock.read_text()
        if jars and not Path(jars).is_dir():
            for file in folder.glob(f"{lock.stem}.*"):
                file.unlink(missing_ok=True)


def _make_base(java: Java) -> None:
    base = base_archive(java)
    if base is not None and not base.is_file():
        fresh = base.with_suffix(f".base-{os.getpid()}")
        command = [str(java.program), "-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}"]
        subprocess.run(command, capture_output=True, timeout=BUILD_TIMEOUT_S, check=True)
        fresh.replace(base)


def _make(java: Java, path: Path) -> None:
    from tailrace.pipeline.jvm.session import start_gateway, warm_up

    fresh = path.with_suffix(f".jsa-{os.getpid()}")
    base = base_archive(java)
    options = [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    gateway = start_gateway(java, options + ([f"-XX:SharedArchiveFile={base}"] if base else []))
    warm_up()
    assert gateway.process.stdin is not None
    gateway.process.stdin.close()
    gateway.process.wait(BUILD_TIMEOUT_S)
    if fresh.is_file():
        fresh.replace(path)


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            file.truncate(0)
            file.write(str(spark_jars()))
            file.flush()
            yield True


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    sys.exit(0 if build(find_java()) else 1)
