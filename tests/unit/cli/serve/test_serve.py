"""`tailrace serve`: the ready line, stopping, and the errors when it cannot start."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, run_tailrace, running_tailrace

IDLE_MAX_KB = 60 * 1024


def serving(*words: str, **variables: str) -> AbstractContextManager[tuple["subprocess.Popen[str]", str]]:
    """A broker started by `tailrace serve`, and its ready line."""
    return running_tailrace("serve", *words, folder=None, **variables)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_ready_line_and_a_clean_stop(tmp_path: Path, number: int) -> None:
    with serving("--kafka-port", "0", "--data-dir", str(tmp_path / "data")) as (process, line):
        found = re.fullmatch(r"ready kafka=127\.0\.0\.1:(\d+) peer=127\.0\.0\.1:\d+\n", line)
        assert found is not None
        socket.create_connection(("127.0.0.1", int(found[1]))).close()
        process.send_signal(number)
        rest, log = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, rest) == (0, "")
        for entry in log.splitlines():
            assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (info|debug|warning) +[\w.]+: ", entry)


def test_the_wildcard_address_is_shown_as_loopback(tmp_path: Path) -> None:
    with serving("--host", "0.0.0.0", "--kafka-port", "0", "--data-dir", str(tmp_path)) as (_, line):
        assert line.startswith("ready kafka=127.0.0.1:")


def test_flags_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    config = tmp_path / "broker.yaml"
    config.write_text(f"data_dir: {tmp_path}/from-file\nkafka.port: 1\nadvertised_host: file.example\n")
    variables = {"TAILRACE_KAFKA_PORT": "0", "TAILRACE_ADVERTISED_HOST": "variable.example"}
    with serving("--config", str(config), "--advertised-host", "flag.example", **variables) as (_, line):
        assert line.startswith("ready kafka=flag.example:")
        assert (tmp_path / "from-file").is_dir()


def test_until_eof_stops_when_standard_input_is_closed(tmp_path: Path) -> None:
    with serving("--until-eof", "--kafka-port", "0", "--data-dir", str(tmp_path)) as (process, line):
        assert line.startswith("ready ")
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None  # communicate would flush it
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0


def test_a_second_broker_on_the_same_data_directory_is_refused(broker: Broker) -> None:
    ran = run_tailrace("serve", "--kafka-port", "0", "--data-dir", str(broker.data_dir))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"tailrace: cannot start: {broker.data_dir} is in use by process {broker.pid} ")
    assert "--data-dir" in ran.err


def test_a_port_in_use_is_refused_and_the_data_stays_usable(broker: Broker, tmp_path: Path) -> None:
    ran = run_tailrace("serve", "--kafka-port", str(broker.port), "--data-dir", str(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert f"tailrace: cannot start: the kafka listener: port {broker.port} on 127.0.0.1 is in use" in ran.err
    assert "--kafka-port" in ran.err
    with Broker(data_dir=tmp_path):
        pass


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "num_partition: 3",
            "'num_partition' in {config}; did you mean 'num_partitions'?\n`tailrace settings`",
        ),
        ("num_partitions: many", "num.partitions=many: it must be a whole number (num_partitions in {config}).\n"),
        ("fsync: never\nkafka.port: 1\n\nkafka_port: 2", "kafka_port is set twice, in lines 2 and 4"),
        ("data_dir: null", "data.dir has no value"),
        ("- a\n- b", "is a list"),
        ("a: [", "not valid YAML"),
    ],
)
def test_an_invalid_settings_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    config = tmp_path / "broker.yaml"
    config.write_text(text)
    ran = run_tailrace("serve", "--config", str(config))
    assert (ran.code, ran.out) == (2, "")
    assert expected.format(config=config) in ran.err


def test_an_unusable_data_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "afile").touch()
    ran = run_tailrace("serve", "--kafka-port", "0", "--data-dir", str(tmp_path / "afile"))
    assert (ran.code, ran.out) == (1, "")
    assert f"{tmp_path}/afile is a file" in ran.err
    (tmp_path / "meta.properties").write_text("what is this?")
    ran = run_tailrace("serve", "--kafka-port", "0", "--data-dir", str(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert "meta.properties" in ran.err
    assert "from a copy" in ran.err


def test_memory_of_an_idle_broker(broker: Broker) -> None:
    resident = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{broker.pid}/status").read_text())
    assert resident is not None
    assert int(resident[1]) < IDLE_MAX_KB


def test_serving_imports_nothing_heavy() -> None:
    heavy = ("typer", "click", "rich", "confluent_kafka", "yaml", "multiprocessing.pool", "pytest")
    serve = "import sys, tailrace.cli.main, tailrace.cli.serve.command, tailrace.cli.serve.running"
    code = f"{serve}; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_what_a_closed_door_needs_is_not_imported(broker: Broker) -> None:
    """In a broker that runs: its libraries would be mapped into the memory of the process, its modules loaded."""
    libraries = ("httptools", "grpc", "google", "cryptography")
    mapped = Path(f"/proc/{broker.pid}/maps").read_text()
    assert [one for one in libraries if f"/site-packages/{one}/" in mapped] == []
    modules = ("tailrace.doors.http", "tailrace.doors.grpc", "tailrace.doors.dmqp", "tailrace.doors.upstream")
    closed = (*libraries, *modules, "tailrace.doors.in_broker", "tailrace.client.cluster", "ipaddress")
    code = (
        "import sys; from tailrace.cli.serve import running; from tailrace.model.settings import Settings; "
        f"running.check_can_open(Settings()); print([name for name in {closed} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


@pytest.mark.parametrize("flag", ["--http-port", "--grpc-port", "--dmqp-port"])
def test_a_door_without_login_is_for_this_machine_only(tmp_path: Path, flag: str) -> None:
    ran = run_tailrace("serve", flag, "0", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "data"))
    assert (ran.code, ran.out) == (1, "")
    assert f"({flag}) asks for no login, and would listen on 0.0.0.0" in ran.err
    assert "--insecure" in ran.err
    assert not (tmp_path / "data").exists()


def test_a_certificate_that_a_door_cannot_use_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    keystore = tmp_path / "broker.pem"
    keystore.write_text("no certificate")
    words = ("serve", "--kafka-port", "0", "--dmqp-port", "0", "--data-dir", str(tmp_path / "data"))
    ran = run_tailrace(*words, TAILRACE_SSL_KEYSTORE_LOCATION=str(keystore))
    assert (ran.code, ran.out) == (1, "")
    assert f"cannot start: the DMQP door cannot use its certificate: {keystore}: the file must have" in ran.err
    assert "Traceback" not in ran.err
