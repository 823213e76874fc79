"""A process dies at each place that matters, and every record is there exactly once in the end."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.pipeline.crash_places import crash_variables
from tests.pipeline.crash_scene import CrashScene
from tests.pipeline.crash_scene import scene as scene
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

pytestmark = pytest.mark.spark

SOURCE_AND_SINK = [
    "source: offsets planned", "source: rows read", "sink: transaction begun", "sink: rows written",
    "sink: before the decision", "sink: decided", "sink: between two commits", "sink: committed", "sink: done",
]  # fmt: skip
ARCHIVE_TASK = ["archive: records fetched", "archive: files written"]
ARCHIVE_DRIVER = ["archive: before the commit", "archive: committed"]
REPLAY_TASK = ["replay: records written", "replay: offsets moved", "replay: committed"]


def one_after_another(places: list[str]) -> list[Any]:
    """All in a row, in one test, and each alone, which takes longer."""
    alone = [pytest.param([place], marks=pytest.mark.long, id=place) for place in places]
    return [pytest.param(places, id="all"), *alone]


@pytest.mark.parametrize("places", one_after_another(SOURCE_AND_SINK))
def test_from_topic_to_topic(scene: CrashScene, places: list[str]) -> None:
    cluster, topic, out = scene.cluster, scene.topic, f"{scene.topic}-out"
    make_topic(cluster, topic, 2)
    make_topic(cluster, out)
    written = 0

    def run() -> None:
        """With records of its own each time: a batch that was decided is committed as soon as Spark gives it up."""
        nonlocal written
        for partition in range(2):
            write(cluster, topic, numbered(10, written), partition=partition)
        written += 10
        scene.copy(out)

    scene.dying_at(places, run)
    assert values_in_topic(cluster, out) == sorted([one.value or b"" for one in numbered(written)] * 2)


@pytest.mark.parametrize("places", one_after_another(ARCHIVE_TASK))
def test_a_task_of_an_archive(scene: CrashScene, places: list[str]) -> None:
    make_topic(scene.cluster, scene.topic)
    write(scene.cluster, scene.topic, numbered(10))
    scene.dying_at(places, scene.archive)
    scene.assert_archived(10)


@pytest.mark.parametrize("place", ARCHIVE_DRIVER)
def test_the_driver_of_an_archive(scene: CrashScene, place: str) -> None:
    cluster, topic = scene.cluster, scene.topic
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    place_file = scene.folder / "place"
    place_file.write_text(place)
    words = ["pipeline", "archive", "--bootstrap", scene.bootstrap, "--topics", topic, "--to", str(scene.archived)]
    driver = subprocess.run(
        [sys.executable, "-m", "tailrace", *words, "--available-now", "--master", "local[1]"],
        env={**os.environ, **crash_variables(place_file)}, capture_output=True, timeout=100, check=False,
    )  # fmt: skip
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    write(cluster, topic, numbered(5, 10))
    scene.archive()
    scene.assert_archived(15)


@pytest.mark.parametrize("places", one_after_another(REPLAY_TASK))
def test_a_replay(scene: CrashScene, places: list[str]) -> None:
    out = f"{scene.topic}-out"
    make_topic(scene.cluster, scene.topic)
    make_topic(scene.cluster, out)
    write(scene.cluster, scene.topic, numbered(10))
    scene.archive()
    scene.dying_at(places, lambda: scene.replay(out))
    assert values_in_topic(scene.cluster, out) == sorted(one.value or b"" for one in numbered(10))
