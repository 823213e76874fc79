"""Help texts and usage errors. No broker is needed for them."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer

from tailrace.cli.app import app
from tailrace.testing import Broker
from tests.unit.cli.program import DEAD_ADDRESS, environment, run_tailrace

GROUPS_WITH_EXAMPLES = (("topic",), ("group",), ("queue",), ("transaction",), ("log",))


def commands_of(application: typer.Typer, *prefix: str) -> Iterator[tuple[str, ...]]:
    """Every command of the application, as the words to type."""
    for command in application.registered_commands:
        assert command.callback is not None
        yield (*prefix, command.name or command.callback.__name__)
    for group in application.registered_groups:
        assert group.typer_instance is not None
        assert group.name is not None
        yield from commands_of(group.typer_instance, *prefix, group.name)


commands = sorted(commands_of(app))


@pytest.mark.parametrize("command", [*commands, *GROUPS_WITH_EXAMPLES], ids=" ".join)
def test_every_command_shows_examples(command: tuple[str, ...]) -> None:
    shown = run_tailrace(*command, "--help")
    assert shown.code == 0
    assert not any(sign in shown.out for sign in ("<bool>", "{", "[["))
    assert "example" in shown.out.lower()
    assert f"tailrace {' '.join(command)}" in shown.out.partition("xample")[2]


def test_the_list_of_commands_is_complete() -> None:
    shown = run_tailrace("--help").out
    assert all(any(line.split()[:1] == [one[0]] for line in shown.splitlines()) for one in commands)


@pytest.mark.parametrize(
    ("words", "expected"),
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
        (("queue", "create", "q", "--lock", "30"), "--lock 30"),
        (("queue", "create", "q", "--dead-letters", "q"), "its own dead letter topic"),
        (("queue", "send", "q", "--header", "x"), "NAME=VALUE"),
        (("queue", "take", "q", "--exec", "true", "--no-ack"), "exclude each other"),
        (("queue", "take", "q", "--workers", "2"), "--exec"),
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
def test_usage_errors_have_exit_code_2_and_name_the_value(words: tuple[str, ...], expected: str) -> None:
    ran = run_tailrace(*words)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
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


def test_no_broker_at_the_address() -> None:
    ran = run_tailrace("topic", "list")
    assert ran.code == 1
    assert ran.err.startswith(f"tailrace: no broker at {DEAD_ADDRESS}: Connection refused.")
    assert "tailrace serve" in ran.err


def test_without_the_kafka_client_the_error_says_how_to_install_it() -> None:
    hide = "import sys; sys.modules['confluent_kafka'] = None; from tailrace.cli.main import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", hide, "consume", "orders"], capture_output=True, text=True, env=environment()
    )
    assert ran.returncode == 1
    assert 'pip install "tailrace[client]"' in ran.stderr


def test_topic_and_group_commands_need_no_kafka_client() -> None:
    hide = "import sys; sys.modules['confluent_kafka'] = None; from tailrace.cli.main import main; sys.exit(main())"
    with Broker() as broker:
        for words in (
            "topic create orders",
            "topic list",
            "topic describe orders",
            "group list",
            "topic delete orders",
        ):
            ran = subprocess.run(
                [sys.executable, "-c", hide, *words.split(), "-b", broker.bootstrap],
                capture_output=True,
                text=True,
                env=environment(),
            )
            assert (ran.returncode, ran.stderr.split()[:1]) in ((0, ["created"]), (0, []), (0, ["deleted"])), ran.stderr


def test_version() -> None:
    assert run_tailrace("--version").out.startswith("tailrace ")
