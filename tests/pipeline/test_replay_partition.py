"""How a replay is named, and how fast it goes; without Spark."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest

from tailrace.pipeline.access import Access
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.replaying import partition
from tailrace.pipeline.replaying.parameters import ReplayParameters, default_id, with_bound
from tailrace.pipeline.replaying.partition import replay_partition
from tailrace.testing import Broker
from tests.pipeline.test_histories import two_days
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.test_upkeep import grown
from tests.pipeline.topics import make_topic

wanted = ReplayParameters(replay_id="", access=Access(bootstrap="a:1"), history="/h", into="again")


def named(one: ReplayParameters, topic: str = "sales", where: str = "") -> str:
    return default_id("history", topic, where, one)


def test_what_makes_it_another_replay() -> None:
    others = [
        replace(wanted, into="elsewhere"), replace(wanted, keep_partition=True), replace(wanted, keep_timestamp=True),
        replace(wanted, key=""), replace(wanted, key="None"), replace(wanted, first=1), replace(wanted, end=1),
        with_bound(wanted, "2026-11-16T08:00", is_start=True), with_bound(wanted, "2026-11-16T08:00", is_start=False),
    ]  # fmt: skip
    names = [*map(named, [wanted, *others]), named(wanted, "bills"), named(wanted, where="offset > 5")]
    assert len(dict.fromkeys(names)) == len(names) == 12


def test_what_does_not() -> None:
    moved = replace(wanted, access=Access(bootstrap="b:2"), history="/moved", per_second=5.0, replay_id="x")
    assert named(moved) == named(wanted)


@dataclass(slots=True)
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)  # seconds

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000 + self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(("rate", "longest"), [(2.0, 1.0), (0.5, 2.0), (1000.0, 1.0)])
def test_it_keeps_a_rate_from_the_first_record_on(
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rate: float,
    longest: float,
) -> None:
    told = [one.to_dict() for one in grown(cluster, topic, tmp_path / "h")]  # of forty records
    make_topic(cluster, f"{topic}-again")
    clock = Clock()
    monkeypatch.setattr(partition, "time", clock)
    here = replace(wanted, replay_id=topic, into=f"{topic}-again", history=str(tmp_path / "h"), per_second=rate)
    assert replay_partition(told, asdict(replace(here, access=Access(bootstrap=broker.bootstrap)))) == 40
    assert max(clock.slept) <= longest
    assert clock.now == pytest.approx(40 / rate)
    assert values_in_topic(cluster, f"{topic}-again") == sorted(one.value or b"" for one in two_days(40))
