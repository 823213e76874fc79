"""Stories from a seed: records come in, and at places that chance picks processes die; each record is there once."""

import random

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tests.pipeline.crash_scene import CrashScene
from tests.pipeline.crash_scene import scene as scene
from tests.pipeline.test_crashes import ARCHIVE_TASK, REPLAY_TASK, SOURCE_AND_SINK
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

pytestmark = [pytest.mark.spark, pytest.mark.long]


class Sender:
    """Writes some more records, and knows which there are."""

    def __init__(self, cluster: Cluster, topic: str, dice: random.Random) -> None:
        self._cluster, self._topic, self._dice = cluster, topic, dice
        self._partitions = dice.randint(1, 3)
        self.sent: list[bytes] = []
        make_topic(cluster, topic, self._partitions)

    def more(self) -> None:
        for partition in range(self._partitions):
            records = numbered(self._dice.randint(1, 40), len(self.sent))
            write(self._cluster, self._topic, records, partition=partition)
            self.sent += [one.value or b"" for one in records]


@pytest.mark.parametrize("seed", range(20))
def test_a_story(scene: CrashScene, seed: int) -> None:
    dice = random.Random(seed)
    sender = Sender(scene.cluster, scene.topic, dice)
    out, again = f"{scene.topic}-out", f"{scene.topic}-again"
    for made in (out, again):
        make_topic(scene.cluster, made)

    def copy() -> None:
        sender.more()
        scene.copy(out, at_once=dice.randint(5, 50))

    def keep() -> None:
        sender.more()
        scene.archive()

    scene.dying_at(dice.sample(SOURCE_AND_SINK, 4), copy)
    assert values_in_topic(scene.cluster, out) == sorted(sender.sent)
    scene.dying_at(dice.sample(ARCHIVE_TASK, 2), keep)
    scene.assert_archived(len(sender.sent))
    scene.dying_at([dice.choice(REPLAY_TASK)], lambda: scene.replay(again))
    assert values_in_topic(scene.cluster, again) == sorted(sender.sent)
