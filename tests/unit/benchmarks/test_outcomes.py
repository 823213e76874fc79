"""Medians, ratios and thresholds of outcomes."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import outcomes
from benchmarks.contests import Figure
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.peers import reachable
from benchmarks.tables import markdown


def outcome(
    *, threshold: Threshold | None = None, rounds: tuple[float, ...] = (90, 200, 100), floor: tuple[float, ...] = ()
) -> Outcome:
    return Outcome(
        name="case",
        fsync="never",
        acks="1",
        unit="MB/s",
        rounds=rounds,
        beside="floor" if floor else None,
        beside_rounds=floor,
        threshold=threshold,
    )


@pytest.mark.parametrize(
    ("threshold", "ok"),
    [
        (None, None),
        (Threshold(of="value", at_least=100), True),
        (Threshold(of="value", at_least=101), False),
        (Threshold(of="value", at_most=99), False),
        (Threshold(of="ratio", at_least=0.1), False),
    ],
)
def test_a_threshold_on_the_median(threshold: Threshold | None, ok: bool | None) -> None:
    assert outcome(threshold=threshold).ok is ok


def test_the_ratio_to_the_floor_is_taken_within_each_round() -> None:
    found = outcome(rounds=(10, 500, 60), floor=(20, 1000, 100), threshold=Threshold(of="ratio", at_least=0.5))
    assert (found.value, found.other, found.ratio, found.ok) == (60, 100, 0.5, True)
    assert found.as_json()["floor"] == 100


def test_a_missed_threshold_is_seen_in_the_table() -> None:
    missed = outcome(threshold=Threshold(of="value", at_least=30_000))
    lines = [missed.as_json() | {"measured": "2026-11-19"}]
    assert "| case | never | 1 | 100 MB/s |  |  | ≥ 30,000 | MISSED | 2026-11-19 |" in markdown(lines, "floor")


def test_a_run_of_some_cases_replaces_their_lines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "RESULTS", tmp_path)
    one, other = outcome(), replace(outcome(), name="other")
    outcomes.write([one, other], "bench.jsonl", keeps_others=False)
    lines = outcomes.write([replace(one, rounds=(7.0,))], "bench.jsonl", keeps_others=True)
    assert [(line["name"], line["value"]) for line in lines] == [("case", 7.0), ("other", 100.0)]
    lines = outcomes.write([one], "bench.jsonl", keeps_others=False)
    assert [line["name"] for line in lines] == ["case"]


def test_a_lowered_threshold_shows_what_was_asked() -> None:
    def figures(value: float) -> list[Figure]:
        return [Figure(name="produce", unit="MB/s", value=value)]

    asked = Threshold(of="ratio", at_least=1.3)
    lowered = reachable(asked, {"kafka": figures(100), "least": figures(123)})
    assert (str(lowered), str(asked)) == ("≥ 1.11 x (of 1.3 asked)", "≥ 1.3 x")
    assert reachable(asked, {"kafka": figures(100), "least": figures(250)}) is asked
    unlucky = reachable(asked, {"kafka": figures(100), "least": figures(80)})
    assert unlucky is not None
    assert unlucky.at_least == 1.0
    assert "(of 1.3 asked)" in outcome(threshold=lowered).as_json()["threshold"]
