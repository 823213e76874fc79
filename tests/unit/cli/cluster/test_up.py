"""`tailrace cluster up`: what it prints, how it fails, and that no process is left behind."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from tailrace.local.cluster_view import look
from tailrace.local.places import PLACE_SETTINGS
from tests.certificates import Authority
from tests.unit.cli.program import DEADLINE_S, run_tailrace, running_tailrace

# Of a broker's place in its cluster, under Kafka's names.
PLACE_FACTS = (
    "node.id",
    "process.roles",
    "controller.quorum.voters",
    "listeners",
    "advertised.listeners",
    "log.dir",
    "log.dirs",
)


def cluster_up(
    folder: Path, *words: str, **variables: str
) -> AbstractContextManager[tuple["subprocess.Popen[str]", str]]:
    """A cluster at free ports, and its ready line."""
    return running_tailrace("cluster", "up", "--base-port", "0", *words, folder=folder, **variables)


def ports(line: str) -> list[int]:
    found = re.fullmatch(r"ready kafka=((127\.0\.0\.1:\d+,?)+)\n", line)
    assert found is not None, line
    return [int(address.rpartition(":")[2]) for address in found[1].split(",")]


def pid_at(port: int) -> int:
    status = run_tailrace("cluster", "status", "--json", bootstrap=f"127.0.0.1:{port}")
    pid = json.loads(status.out)["brokers"][0]["pid"]
    assert isinstance(pid, int)
    return pid


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_line_when_ready_and_a_clean_end(tmp_path: Path, number: int) -> None:
    with cluster_up(tmp_path, "--brokers", "1") as (process, line):
        (port,) = ports(line)
        assert look("127.0.0.1", port).why_unwell(1) == ""
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out) == (0, "")
    logged = [text for text in err.splitlines() if not text.startswith("tailrace: ")]
    assert logged
    assert all(text.startswith("broker 1 | ") for text in logged)
    assert err.endswith("tailrace: all brokers have stopped\n")
    assert (tmp_path / "tailrace-cluster" / "broker-1" / "clean-shutdown").is_file()


def test_ports_are_kept_for_the_next_time(tmp_path: Path) -> None:
    for base_port in ("0", "0"):
        with cluster_up(tmp_path, "--brokers", "1", "--base-port", base_port) as (process, line):
            kept = json.loads((tmp_path / "tailrace-cluster" / "cluster.json").read_text())
            assert ports(line) == [kept[0]["kafka_port"]]
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=DEADLINE_S)
    assert ports(line) == [kept[0]["kafka_port"]]


def test_a_broker_that_dies_is_reported_and_not_restarted(tmp_path: Path) -> None:
    with cluster_up(tmp_path, "--brokers", "1") as (process, line):
        (port,) = ports(line)
        os.kill(pid_at(port), signal.SIGKILL)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "BROKER 1 IS DOWN: it was killed by signal 9. It is not started again.\nIts log ends:\n" in err
    assert f"tailrace serve --data-dir tailrace-cluster/broker-1 --kafka-port {port} --peer-port " in err
    assert err.endswith("tailrace: no broker is left.\n")


def test_its_brokers_end_with_it(tmp_path: Path) -> None:
    with cluster_up(tmp_path, "--brokers", "1") as (process, line):
        child = os.pidfd_open(pid_at(*ports(line)))
        process.kill()
        ended, _, _ = select.select([child], [], [], DEADLINE_S)
        os.close(child)
    assert ended


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    """The broker is paused (SIGSTOP) again and again, so that it cannot stop, and is killed before its deadline."""
    with cluster_up(tmp_path, "--brokers", "1") as (process, line):
        pid = pid_at(*ports(line))
        child = os.pidfd_open(pid)
        process.send_signal(signal.SIGINT)
        while not select.select([child], [], [], 0.001)[0]:
            os.kill(pid, signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
        os.close(child)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert "in time" not in err
    assert ("did not stop cleanly: broker 1: the broker ended with exit code -9" in err) == (process.returncode == 1)


def test_settings_of_the_environment_reach_all_brokers(tmp_path: Path) -> None:
    with cluster_up(tmp_path, "--brokers", "1", TAILRACE_BROKER_RACK="r1", TAILRACE_KAFKA_PORT="1") as (_, line):
        (port,) = ports(line)
        assert [one.rack for one in look("127.0.0.1", port).brokers] == ["r1"]


def test_its_brokers_have_the_defaults_of_serve(tmp_path: Path) -> None:
    """All but those of each broker's place: its id, ports, data directory, and the brokers that it joins."""
    with running_tailrace("serve", "--kafka-port", "0", folder=tmp_path) as (_, line):
        address = re.match(r"ready kafka=(\S+)", line)
        assert address is not None
        served = broker_settings(address[1], 1)
    with cluster_up(tmp_path, "--brokers", "2") as (_, line):
        first, second = (broker_settings(f"127.0.0.1:{port}", id) for id, port in enumerate(ports(line), 1))
    assert served["group.initial.rebalance.delay.ms"] == "3000"
    assert served["group.consumer.heartbeat.interval.ms"] == "5000"
    assert without_place(first) == without_place(second) == without_place(served)


def broker_settings(bootstrap: str, broker_id: int) -> dict[str, str | None]:
    """As DescribeConfigs shows them to any client."""
    wanted = ConfigResource(ConfigResource.Type.BROKER, str(broker_id))
    client = AdminClient({"bootstrap.servers": bootstrap})
    described = client.describe_configs([wanted])[wanted].result(DEADLINE_S)
    return {name: entry.value for name, entry in described.items()}


def without_place(settings: dict[str, str | None]) -> dict[str, str | None]:
    """Without what a door has counted, either."""
    place = (*PLACE_SETTINGS, *PLACE_FACTS)
    return {name: value for name, value in settings.items() if name not in place and not name.startswith("door.")}


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("cluster", "up", "--data-dir", str(tmp_path), "--base-port", str(port))
        ran = run_tailrace(*words)
    assert (ran.code, ran.out) == (1, "")
    assert f"cannot start: port {port} of broker 1 is in use." in ran.err
    assert "--base-port" in ran.err
    assert not (tmp_path / "broker-1").exists()


def test_a_broker_that_cannot_start_is_shown_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "meta.properties").write_text("what is this?")
    ran = run_tailrace("cluster", "up", "--brokers", "1", "--data-dir", str(tmp_path), "--base-port", "0")
    assert (ran.code, ran.out) == (1, "")
    assert (
        "tailrace: cannot start the cluster: broker 1: the broker did not start: exit code 1.\nIts log ends:" in ran.err
    )


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (("--brokers", "0"), {}, "--brokers"),
        (("--base-port", "70000"), {}, "--base-port"),
        (("--base-port", "65500"), {}, "peer port 65600"),
        (("--fsync", "sometimes"), {}, "sometimes"),
        ((), {"TAILRACE_NUM_PARTITION": "1"}, "did you mean 'TAILRACE_NUM_PARTITIONS'"),
        ((), {"TAILRACE_NUM_PARTITIONS": "none"}, "num.partitions=none: it must be a whole number"),
    ],
)
def test_wrong_flags_and_settings_are_refused(
    tmp_path: Path, words: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    ran = run_tailrace("cluster", "up", "--data-dir", str(tmp_path), *words, **variables)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_with_the_data_of_a_single_broker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    ran = run_tailrace("cluster", "up", "--data-dir", str(tmp_path))
    assert ran.code == 2
    assert "a single broker, which `tailrace serve` runs" in ran.err
    (tmp_path / "file").touch()
    ran = run_tailrace("cluster", "up", "--data-dir", str(tmp_path / "file"))
    assert ran.code == 1
    assert "--data-dir" in ran.err


def test_three_brokers_of_which_one_dies(tmp_path: Path, topic: str) -> None:
    """The next `cluster up` starts all three again, at the same addresses and with their records."""
    with cluster_up(tmp_path, "--brokers", "3", "--fsync", "never") as (process, line):
        addresses = [f"127.0.0.1:{port}" for port in ports(line)]
        assert run_tailrace("topic", "create", topic, "-r", "3", bootstrap=addresses[0]).code == 0
        status = json.loads(run_tailrace("cluster", "status", "--json", bootstrap=addresses[2]).out)
        assert [f"{one['host']}:{one['port']}" for one in status["brokers"]] == addresses
        os.kill(status["brokers"][1]["pid"], signal.SIGKILL)
        assert wait_for_state(addresses[0], 2, "fenced")["pid"] is None
        assert run_tailrace("produce", topic, stdin="kept\n", bootstrap=addresses[2]).code == 0
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert "BROKER 2 IS DOWN: it was killed by signal 9." in err
    assert {text.partition(" | ")[0] for text in err.splitlines() if " | " in text} == {
        "broker 1",
        "broker 2",
        "broker 3",
    }
    with cluster_up(tmp_path) as (_, again):
        assert again == line
        assert run_tailrace("consume", topic, "--from-beginning", "--max", "1", bootstrap=addresses[1]).out == "kept\n"


def wait_for_state(bootstrap: str, broker_id: int, state: str) -> dict[str, object]:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        ran = run_tailrace("cluster", "status", "--json", bootstrap=bootstrap)
        (found,) = (one for one in json.loads(ran.out)["brokers"] if one["id"] == broker_id)
        if found["state"] == state:
            return dict(found)
        assert time.monotonic() < deadline, found


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_tls_at_both_listeners(tmp_path: Path, client_auth: str) -> None:
    authority = Authority(tmp_path)
    variables = {
        "TAILRACE_LISTENER_SECURITY_PROTOCOL_MAP": "kafka:SSL,peer:SSL",
        "TAILRACE_SSL_KEYSTORE_LOCATION": authority.keystore(),
        "TAILRACE_SSL_TRUSTSTORE_LOCATION": authority.truststore,
        "TAILRACE_SSL_CLIENT_AUTH": client_auth,
    }
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.location={authority.truststore}\n"
        f"ssl.keystore.location={authority.keystore('client')}\n"
    )
    with cluster_up(tmp_path, "--brokers", "3", **variables) as (_, line):
        assert line.startswith("ready kafka=")
        bootstrap = line.split("=")[1].strip()
        ran = run_tailrace("cluster", "status", "--json", "--client-config", str(config), bootstrap=bootstrap)
        assert [one["state"] for one in json.loads(ran.out)["brokers"]] == ["up", "up", "up"]


def test_a_keystore_that_is_not_there(tmp_path: Path) -> None:
    variables = {
        "TAILRACE_LISTENER_SECURITY_PROTOCOL_MAP": "kafka:SSL",
        "TAILRACE_SSL_KEYSTORE_LOCATION": str(tmp_path / "none.pem"),
    }
    data_dir = str(tmp_path / "data")
    ran = run_tailrace("cluster", "up", "--base-port", "0", "--data-dir", data_dir, **variables)
    assert ran.code == 1
    assert "none.pem" in ran.err
    assert "cannot start the cluster" in ran.err
