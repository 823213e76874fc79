"""Programs in other languages (`java/`, `java_connect/`, `go/`, `node/`): what they need is fetched once, and they are
built once, into the user's cache directory; sources that change are built anew. `Missing` says which tool is not there
or what could not be fetched, and tests skip; a program that does not compile fails them.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zlib import crc32

from benchmarks.fetched import Missing, cache_folder, need, put_in_place
from benchmarks.jars import KAFKA_VERSION, LOG4J, LOG_SETTINGS, jars, kafka_part

here = Path(__file__).parent
KAFKA_JARS = (kafka_part("kafka_2.13"), kafka_part("kafka-tools"), kafka_part("kafka-streams"), LOG4J)
CONNECT_JARS = (kafka_part("connect-runtime"), kafka_part("connect-file"), LOG4J)
# A worker of Connect says where it listens when its port is 0.
CONNECT_LOG_SETTINGS = f"""\
{LOG_SETTINGS}
logger.rest.name = org.apache.kafka.connect.runtime.rest.RestServer
logger.rest.level = info
"""
GENTLY = ("nice", "-n", "5")  # brokers come first
Build = Callable[[Path, Sequence[Path]], None]  # from sources into an empty folder
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java(main_class: str) -> list[str]:
    """The command that runs a class of Kafka's, or one of ours."""
    need("Kafka's own client", "java", "javac", "mvn")
    folder = jars(f"kafka-with-streams-{KAFKA_VERSION}", KAFKA_JARS)
    classes = _built("java", "*.java", lambda made, sources: _compile(folder, made, sources))
    log = f"-Dlog4j2.configurationFile={classes / 'log4j2.properties'}"
    return [*GENTLY, "java", *JAVA_OPTIONS, log, "-cp", f"{folder}/*:{classes}", main_class]


def _compile(folder: Path, made: Path, sources: Sequence[Path]) -> None:
    _build(["javac", "-d", str(made), "-cp", f"{folder}/*", *map(str, sources)])
    (made / "log4j2.properties").write_text(LOG_SETTINGS)


def connect(properties: Path) -> list[str]:
    """The command that runs a worker of Kafka Connect with these settings; our own connectors are among its plugins."""
    need("Kafka Connect", "java", "javac", "mvn")
    folder = jars(f"kafka-connect-{KAFKA_VERSION}", CONNECT_JARS)
    classes = _built("java_connect", "*.java", lambda made, sources: _compile_connectors(folder, made, sources))
    log = f"-Dlog4j2.configurationFile={classes / 'log4j2.properties'}"
    options = (*JAVA_OPTIONS, log, "-cp", f"{folder}/*:{classes}")
    return [*GENTLY, "java", *options, "org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]


def _compile_connectors(folder: Path, made: Path, sources: Sequence[Path]) -> None:
    _compile(folder, made, sources)
    (made / "log4j2.properties").write_text(CONNECT_LOG_SETTINGS)
    services = made / "META-INF" / "services"
    services.mkdir(parents=True)
    names = "".join(f"{source.stem}\n" for source in sources)
    (services / "org.apache.kafka.connect.source.SourceConnector").write_text(names)


def go() -> list[str]:
    need("franz-go", "go")
    folder = _built("go", "*", _compile_go)
    return [*GENTLY, str(folder / "program")]


def _compile_go(made: Path, sources: Sequence[Path]) -> None:
    own = {"GOMODCACHE": str(cache_folder() / "go-modules"), "GOFLAGS": "-modcacherw"}
    folder = str(sources[0].parent)
    _fetch(["go", "mod", "download", "-C", folder], own)
    _build(["go", "build", "-C", folder, "-o", str(made / "program"), "."], own)


def go_version() -> str:
    found = re.search(r"franz-go v(\S+)", (here / "go" / "go.mod").read_text())
    assert found is not None
    return found[1]


def node(program: str) -> list[str]:
    need("kafkajs", "node", "npm")
    folder = _built("node", "*", _install)
    return [*GENTLY, "node", str(folder / program)]


def _install(made: Path, sources: Sequence[Path]) -> None:
    for source in sources:
        (made / source.name).write_text(source.read_text())
    _fetch(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(made)])


def node_version() -> str:
    return str(json.loads((here / "node" / "package.json").read_text())["dependencies"]["kafkajs"])


def _built(language: str, pattern: str, build: Build) -> Path:
    sources = sorted((here / language).glob(pattern))
    print_of_all = crc32(b"".join(source.name.encode() + source.read_bytes() for source in sources))
    wanted = cache_folder() / "interop" / f"{language}-{print_of_all:08x}"
    if not wanted.exists():
        made = wanted.with_suffix(f".{os.getpid()}")
        made.mkdir(parents=True)
        build(made, sources)
        put_in_place(made, wanted)
    return wanted


def _fetch(command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
    if said := _failure(command, more):
        raise Missing(f"`{' '.join(command[:2])}` could not fetch what is needed:\n{said}")


def _build(command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
    if said := _failure(command, more):
        raise RuntimeError(f"`{' '.join(command[:2])}` failed:\n{said}")


def _failure(command: Sequence[str], more: Mapping[str, str] | None) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | (more or {}), check=False)
    return (ran.stdout + ran.stderr)[-2000:] or "no word why" if ran.returncode else ""
