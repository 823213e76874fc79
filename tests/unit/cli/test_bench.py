"""`tailrace bench`: figures of the right kind; their size is the benchmarks' affair."""

import json

import pytest

from tailrace.cli.latency import percentiles
from tests.unit.cli.program import Program


def test_figures_for_scripts(tailrace: Program) -> None:
    ran = tailrace("bench", "--messages", "2000", "--size", "100", "--rate", "200", "--seconds", "0.5", "--json")
    assert ran.code == 0, ran.err
    produced, consumed, latency = map(json.loads, ran.out.splitlines())
    assert (produced["name"], produced["messages"], produced["size"]) == ("produce", 2000, 100)
    assert produced["messages_per_s"] == pytest.approx(2000 / produced["seconds"], rel=0.05)
    assert consumed["name"] == "consume"
    assert latency["messages"] == 100
    assert 0 < latency["confirmed_ms"]["p50"] <= latency["confirmed_ms"]["p99"] <= latency["confirmed_ms"]["max"]
    assert "bench" not in tailrace("topic", "list").out  # its topic is gone


def test_a_table_for_people(tailrace: Program) -> None:
    ran = tailrace("bench", "--messages", "500", "--only", "produce", "--only", "consume", "--partitions", "2")
    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith(" ") and line.split()][-2:] == [
        "produce",
        "consume",
    ]


def test_percentiles() -> None:
    assert percentiles([float(n) for n in range(1, 1001)]) == {
        "p50": 501.0,
        "p99": 991.0,
        "p999": 1000.0,
        "max": 1000.0,
    }
    assert percentiles([7.0]) == {"p50": 7.0, "p99": 7.0, "p999": 7.0, "max": 7.0}
