"""Jars from Maven Central with their dependencies, kept in the user's cache directory."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.fetched import Missing, cache_folder, need, put_in_place

KAFKA_VERSION: Final = "4.3.0"
LOG4J: Final = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3")
LOG_SETTINGS: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %m%n
"""
Artifact = tuple[str, str, str]  # group, name, version
NOTHING_ELSE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def kafka_part(name: str) -> Artifact:
    return "org.apache.kafka", name, KAFKA_VERSION


def jars(name: str, artifacts: Sequence[Artifact], *, alone: bool = False) -> Path:
    """The folder with the jars, downloaded the first time; `alone`: without their dependencies."""
    need(name, "java", "mvn")
    cache = cache_folder() / name
    folder = cache / "jars"
    if not folder.exists():
        _fetch(cache, folder, _pom(artifacts, NOTHING_ELSE if alone else ""))
    return folder


def _fetch(cache: Path, folder: Path, pom: str) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "pom.xml").write_text(pom)
    unfinished = cache / f"fetching-{os.getpid()}"
    command = ["mvn", "-q", "-B", "-f", str(cache / "pom.xml"), "dependency:copy-dependencies"]
    ran = subprocess.run(
        [*command, f"-DoutputDirectory={unfinished}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise Missing(f"Maven could not fetch {cache.name}:\n{ran.stdout[-1000:]}")
    put_in_place(unfinished, folder)


def _pom(artifacts: Sequence[Artifact], without: str) -> str:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{release}</version>{without}"
        "</dependency>"
        for group, name, release in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tailrace</groupId><artifactId>cache</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
