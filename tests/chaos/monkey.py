"""The hand that breaks things: one trouble after the other, drawn from a seed, each of them a minority's.

One broker at a time is killed, paused, cut off, or deaf in one direction; or two of three do not hear each other while
both hear the third. A trouble ends before the next begins, but what it leaves behind need not be mended by then: only
now and then is the cluster given the time to be well, and must be, with every writer getting on in every partition.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tailrace.testing import Cluster
from tests.chaos.diary import Diary
from tests.chaos.writers import Writer

HEALTHY_WITHIN_S: Final = 60.0
PROGRESS_WITHIN_S: Final = 30.0
LOOK_S: Final = 0.02
QUIET_MAX_S: Final = 1.5  # between two troubles
CALM_SHARE: Final = 0.15

Trouble = Callable[["Monkey", int], None]


class Monkey:
    def __init__(self, cluster: Cluster, writers: Sequence[Writer], seed: int, diary: Diary) -> None:
        self._cluster = cluster
        self._writers = writers
        self._random = random.Random(seed)
        self._diary = diary

    def rage(self, seconds: float) -> None:
        """Make trouble for so long; all is mended at the end, as far as hands can."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            trouble = self._random.choice(TROUBLES)
            name = name_of(trouble)
            victim = self._random.choice(self._cluster.ids)
            self._diary.note(f"{name} {victim}")
            self._diary.count(name)
            trouble(self, victim)
            self._let_pass(QUIET_MAX_S)
            if self._random.random() < CALM_SHARE:
                self.calm()
        self.calm()

    def calm(self) -> None:
        """The cluster is left alone: it gets well, and everybody gets on."""
        self._cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        self._diary.note("well")
        wait_for_progress(self._writers, PROGRESS_WITHIN_S)
        self._diary.note("all get on")

    def _let_pass(self, most_s: float) -> None:
        time.sleep(self._random.uniform(0.0, most_s))  # until a moment that nobody can foresee: what this is about

    # Troubles

    def _kill(self, victim: int) -> None:
        self._cluster.kill(victim)
        self._let_pass(3.0)
        self._diary.note(f"start {victim}")
        self._cluster.restart(victim)

    def _kill_twice(self, victim: int) -> None:
        """The second time while it comes back."""
        broker = self._cluster.broker(victim)
        broker.kill()
        broker.launch()
        self._let_pass(0.8)
        self._diary.note(f"kill {victim} again")
        self._kill(victim)

    def _pause(self, victim: int) -> None:
        self._cluster.pause(victim)
        self._let_pass(5.0)
        self._diary.note(f"resume {victim}")
        self._cluster.resume(victim)

    def _isolate(self, victim: int) -> None:
        for other in self._others(victim):
            self._cluster.partition(victim, other)
        self._stay_cut(6.0)

    def _mute(self, victim: int) -> None:
        """It hears the others, who do not hear it."""
        for other in self._others(victim):
            self._cluster.partition(victim, other, one_way=True)
        self._stay_cut(6.0)

    def _deafen(self, victim: int) -> None:
        for other in self._others(victim):
            self._cluster.partition(other, victim, one_way=True)
        self._stay_cut(6.0)

    def _split_pair(self, victim: int) -> None:
        self._cluster.partition(victim, self._random.choice(self._others(victim)))
        self._stay_cut(6.0)

    def _split_pair_one_way(self, victim: int) -> None:
        self._cluster.partition(victim, self._random.choice(self._others(victim)), one_way=True)
        self._stay_cut(6.0)

    def _kill_cut_off(self, victim: int) -> None:
        """It dies where nobody hears it, and is back only when it is heard."""
        for other in self._others(victim):
            self._cluster.partition(victim, other)
        self._let_pass(2.0)
        self._diary.note(f"kill {victim}, which is cut off")
        broker = self._cluster.broker(victim)
        broker.kill()
        broker.launch()
        self._stay_cut(2.0)
        broker.wait_until_ready()

    def _stay_cut(self, most_s: float) -> None:
        self._let_pass(most_s)
        self._diary.note("heal")
        self._cluster.heal()

    def _others(self, victim: int) -> list[int]:
        return [one for one in self._cluster.ids if one != victim]


TROUBLES: Final[tuple[Trouble, ...]] = (
    Monkey._kill,
    Monkey._kill,
    Monkey._kill_twice,
    Monkey._pause,
    Monkey._pause,
    Monkey._isolate,
    Monkey._mute,
    Monkey._deafen,
    Monkey._split_pair,
    Monkey._split_pair_one_way,
    Monkey._kill_cut_off,
)
KINDS: Final[dict[str, tuple[Trouble, ...]]] = {
    "kills": (Monkey._kill, Monkey._kill_twice, Monkey._kill_cut_off),
    "pauses": (Monkey._pause,),
    "cuts": (Monkey._isolate, Monkey._mute, Monkey._deafen, Monkey._split_pair, Monkey._split_pair_one_way),
}


def name_of(trouble: Trouble) -> str:
    return trouble.__name__.strip("_")


def never_came(counts: Mapping[str, int]) -> list[str]:
    """The kinds of trouble that a storm did not bring."""
    return [kind for kind, members in KINDS.items() if not any(counts.get(name_of(one)) for one in members)]


def wait_for_progress(writers: Sequence[Writer], within_s: float) -> None:
    """Until every writer was acknowledged something more in every partition."""
    before = [[len(one) for one in writer.promised] for writer in writers]
    deadline = time.monotonic() + within_s
    while waiting := [
        (writer.number, partition)
        for writer, counts in zip(writers, before, strict=True)
        for partition, count in enumerate(counts)
        if len(writer.promised[partition]) <= count
    ]:
        complaints = [one for writer in writers for one in writer.complaints]
        assert not complaints, complaints
        assert time.monotonic() < deadline, f"nothing was acknowledged for {within_s:g} s: writer, partition {waiting}"
        time.sleep(LOOK_S)
