"""Spark's classes, loaded and checked once, kept in a file that later JVMs map into memory (AppCDS).

Half of a session's start is reading some fifteen thousand classes. The JVM can write what it has loaded to an archive
when it ends; the next maps that file. Writing it makes a session slow, so no session of a person's does: the first one
starts a process in the background, at the lowest priority, which runs a small session of its own and leaves
the archive in the cache (`python -m tailrace.pipeline.jvm.class_archive`).

An archive fits one Java and one set of jars: both are in its name. A JVM that finds it unfit goes on without it.
It is large, so whoever makes one removes those whose jars are gone: the lock beside each says where they were.
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
    """What a JVM needs to be told to use the archive; nothing when there is none yet."""
    path = archive_path(java)
    if not path.is_file():
        return []
    files = [str(base)] if (base := base_archive(java)) is not None else []
    return ["-XX:SharedArchiveFile=" + ":".join([*files, str(path)]), "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def base_archive(java: Java) -> Path | None:
    """The archive of Java's own classes, where ours has to bring it; None where Java has one, as most have."""
    if (java.home / "lib" / "server" / "classes.jsa").is_file():
        return None
    return archive_path(java).with_suffix(".base")


def build_in_background(java: Java) -> None:
    """See to it that there will be one; nothing happens when there is, or when somebody is making it."""
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
    """Make the archive, unless another process is at it. The archive, or None when it could not be made."""
    path = archive_path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.with_suffix(".lock")) as alone:
        if alone and not path.is_file():
            forget_the_gone(path.parent)
            for left_over in path.parent.glob(f"{path.name}-*"):  # of a process that was ended while it made one
                left_over.unlink()
            _make_base(java)
            _make(java, path)
    return path if path.is_file() else None


def forget_the_gone(folder: Path) -> None:
    """Remove archives of environments that are no more."""
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
