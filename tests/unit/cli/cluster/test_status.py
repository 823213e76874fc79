"""`tailrace cluster status`: for people and for scripts, of healthy and unhealthy clusters."""

import json
import signal

import pytest

from tailrace.cli.cluster.status import _show, _status
from tailrace.local.cluster_view import BrokerView, ClusterView, PartitionView
from tailrace.testing import Broker
from tests.unit.cli.program import DEAD_ADDRESS, DEADLINE_S, Program, run_tailrace, start_tailrace

unwell = ClusterView(
    cluster_id="c1",
    controller=None,
    voters=(),
    brokers=(
        BrokerView(id=1, host="a.example", port=9092, rack="r1", is_fenced=False),
        BrokerView(id=2, host="b.example", port=9092, rack=None, is_fenced=True),
    ),
    partitions=(
        PartitionView(topic="t", partition=0, leader=1, leader_epoch=1, replicas=(1, 2), in_sync=(1,), offline=(2,)),
        PartitionView(topic="t", partition=1, leader=1, leader_epoch=1, replicas=(1,), in_sync=(1,), offline=()),
        PartitionView(topic="t", partition=2, leader=None, leader_epoch=1, replicas=(2,), in_sync=(), offline=(2,)),
    ),
)


def test_json_for_scripts(tailrace: Program, broker: Broker, topic: str) -> None:
    tailrace("topic", "create", topic, "--partitions", "2")
    ran = tailrace("cluster", "status", "--json")
    assert ran.code == 0, ran.err
    status = json.loads(ran.out)
    fields = ["cluster_id", "controller", "voters", "brokers", "partitions", "under_replicated", "offline", "damaged"]
    assert list(status) == fields
    assert status["controller"] == 1
    assert (status["under_replicated"], status["offline"], status["damaged"]) == ([], [], [])
    (one,) = status["brokers"]
    assert one == {
        "id": 1,
        "host": "127.0.0.1",
        "port": broker.port,
        "rack": None,
        "pid": broker.pid,
        "state": "up",
        "leaders": status["partitions"],
        "replicas": status["partitions"],
    }
    assert status["partitions"] >= 2


def test_a_table_for_people(tailrace: Program, broker: Broker) -> None:
    ran = tailrace("cluster", "status")
    assert ran.code == 0, ran.err
    assert "controller 1, metadata voters 1\n" in ran.out
    row = next(line.split() for line in ran.out.splitlines() if broker.bootstrap in line)
    assert row[:4] == ["1", "up", broker.bootstrap, str(broker.pid)]
    assert "all replicas in sync" in ran.out


def test_unhealthy_partitions_are_listed() -> None:
    status = _status(unwell)
    assert [(one["id"], one["state"], one["rack"], one["leaders"], one["replicas"]) for one in status["brokers"]] == [
        (1, "up", "r1", 2, 2),
        (2, "fenced", None, 0, 2),
    ]
    assert status["under_replicated"] == [
        {"topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "in_sync": [1]},
        {"topic": "t", "partition": 2, "leader": None, "replicas": [2], "in_sync": []},
    ]
    assert [one["partition"] for one in status["offline"]] == [2]


def test_unhealthy_partitions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _show(_status(unwell), as_json=False)
    shown = capsys.readouterr().out
    assert "controller none, metadata voters none" in shown
    assert "fenced" in shown
    assert "3 partitions, 1 without a leader, 2 under-replicated:" in shown
    rows = [line.split() for line in shown.splitlines() if line.strip().startswith("t ")]
    assert rows == [["t", "2", "none", "2"], ["t", "0", "1", "1,2", "1"]]


def test_no_broker_answers() -> None:
    ran = run_tailrace("cluster", "status", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"tailrace: no broker answers: {DEAD_ADDRESS}: Connection refused.")
    assert "tailrace cluster up" in ran.err


def test_a_wrong_address_is_refused() -> None:
    ran = run_tailrace("cluster", "status", "--bootstrap", "here")
    assert ran.code == 2
    assert "'here' is not HOST:PORT" in ran.err


def test_the_next_address_is_asked_when_one_does_not_answer(broker: Broker) -> None:
    ran = run_tailrace("cluster", "status", "--json", bootstrap=f"{DEAD_ADDRESS},{broker.bootstrap}")
    assert ran.code == 0, ran.err


def test_it_can_be_watched(broker: Broker) -> None:
    process = start_tailrace("cluster", "status", "--watch", "--json", "--bootstrap", broker.bootstrap)
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline())["controller"] for _ in range(2)]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert (seen, process.returncode, err) == ([1, 1], 0, "")


def test_watching_goes_on_when_no_broker_answers() -> None:
    process = start_tailrace("cluster", "status", "--watch", "--json", "--bootstrap", DEAD_ADDRESS)
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline())["error"] for _ in range(2)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_S)
    assert all("no broker answers" in one for one in seen)
