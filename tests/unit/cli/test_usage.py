"""What the command line says to those who do not know it yet, or hold it wrong. No broker is needed to be told."""

import json
import subprocess
import sys

import pytest

from tests.unit.cli.program import NOBODY, environment, run_tailrace

commands = (
    ("serve",), ("demo",), ("produce",), ("consume",), ("bench",), ("log", "dump"), ("log", "verify"),
    ("cluster", "up"), ("cluster", "status"),
    ("topic", "create"), ("topic", "list"), ("topic", "describe"), ("topic", "alter"), ("topic", "delete"),
)  # fmt: skip


@pytest.mark.parametrize("command", commands, ids=" ".join)
def test_every_command_shows_examples(command: tuple[str, ...]) -> None:
    shown = run_tailrace(*command, "--help")
    assert shown.code == 0
    assert not any(sign in shown.out for sign in ("<bool>", "{", "[["))
    assert "example" in shown.out.lower()
    assert f"tailrace {' '.join(command)}" in shown.out.partition("xample")[2]


def test_the_list_of_commands_names_them_all() -> None:
    shown = run_tailrace("--help").out
    assert all(any(line.split()[:1] == [one[0]] for line in shown.splitlines()) for one in commands)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tpic",), "tpic"),
        (("topic", "alter", "t"), "nothing to change"),
        (("topic", "create", "t", "--config", "retention.ms"), "NAME=VALUE"),
        (("topic", "create", "t", "--partitions", "many"), "--partitions"),
        (("produce", "t", "--header", "x"), "NAME=VALUE"),
        (("produce", "t", "--acks", "2"), "2"),
        (("consume", "t", "--from-beginning", "--offset", "3"), "one of them"),
        (("topic", "list", "--bootstrap", "localhost"), "HOST:PORT"),
        (("topic", "list", "--bootstrap", "127.0.0.1:99999"), "from 1 to 65535"),
        (("topic", "create", "a", "b", "a"), "a is named twice"),
        (("bench", "--only", "consume"), "--topic"),
        (("serve", "--kafka-port", "70000"), "from 0 to 65535"),
        (("serve", "--join", "here"), "HOST:PORT"),
        (("serve", "--peer-port", "-1"), "from 0 to 65535"),
        (("serve", "--fsync", "sometimes"), "always, interval, never"),
        (("serve", "--data-dir", ""), "data.dir is empty"),
        (("serve", "--config", "no-such-file.yaml"), "no-such-file.yaml"),
        (("serve", "--no-such-flag"), "--no-such-flag"),
    ],
)
def test_usage_errors_have_exit_code_2_and_name_the_value(words: tuple[str, ...], said: str) -> None:
    ran = run_tailrace(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_settings_for_scripts_have_typed_defaults_and_all_columns() -> None:
    broker = {one["name"]: one for one in json.loads(run_tailrace("settings", "--json").out)}
    assert broker["delete.topic.enable"]["default"] is True
    assert broker["kafka.port"]["default"] == 9092
    assert broker["kafka.port"]["values"] == "from 0 to 65535"
    assert broker["kafka.port"]["forms"] == ["kafka_port", "TAILRACE_KAFKA_PORT", "--kafka-port"]
    topic = {one["name"]: one for one in json.loads(run_tailrace("settings", "--topics", "--json").out)}
    assert topic["preallocate"]["default"] is False
    assert topic["retention.ms"]["default"] == 604_800_000


def test_where_no_broker_is() -> None:
    ran = run_tailrace("topic", "list")
    assert ran.code == 1
    assert ran.err.startswith(f"tailrace: no broker at {NOBODY}: Connection refused.")
    assert "tailrace serve" in ran.err


def test_without_the_client_it_says_how_to_get_it() -> None:
    hide = "import sys; sys.modules['confluent_kafka'] = None; from tailrace.cli.main import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", hide, "topic", "list"], capture_output=True, text=True, env=environment()
    )
    assert ran.returncode == 1
    assert 'pip install "tailrace[client]"' in ran.stderr


def test_version() -> None:
    assert run_tailrace("--version").out.startswith("tailrace ")
