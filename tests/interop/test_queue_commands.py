"""`tailrace queue …` on brokers with share groups."""

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tailrace.testing import Broker
from tests.unit.cli.program import Ran, environment, run_tailrace


@pytest.fixture
def queue(sharing: str) -> str:
    """A new queue."""
    name = f"q-{uuid.uuid4().hex[:8]}"
    assert run(sharing, "create", name, "--delivery-limit", "3").err == f"created {name}\n"
    return name


def run(sharing: str, *words: str, stdin: str = "") -> Ran:
    return run_tailrace("queue", *words, bootstrap=sharing, stdin=stdin)


def taken(sharing: str, queue: str, *words: str) -> list[tuple[str, int]]:
    """The values and delivery counts of all messages that wait."""
    out = run(sharing, "take", queue, "--timeout", "1", "--format", "json", *words).out
    return [(one["value"], one["delivery_count"]) for one in map(json.loads, out.splitlines())]


def described(sharing: str, queue: str) -> Any:
    return json.loads(run(sharing, "describe", queue, "--json").out)[0]


def send(sharing: str, queue: str, *values: str) -> None:
    assert run(sharing, "send", queue, *values).err.startswith(f"sent {len(values)} message")


def test_send_peek_and_take(sharing: str, queue: str) -> None:
    send(sharing, queue, "a", "b")
    assert run(sharing, "send", queue, "-H", "x=y", "--key", "k", stdin="c\nd\n").err == f"sent 2 messages to {queue}\n"
    assert run(sharing, "peek", queue, "--max", "3").out == "a\nb\nc\n"
    assert described(sharing, queue)["waiting"] == 4
    assert run(sharing, "take", queue, "--max", "1").out == "a\n"
    shown = [json.loads(line) for line in run(sharing, "peek", queue, "--format", "json").out.splitlines()]
    assert [one["value"] for one in shown][-3:] == ["b", "c", "d"]
    assert (shown[-1]["key"], shown[-1]["headers"]) == ("k", [{"name": "x", "value": "y"}])
    assert taken(sharing, queue) == [("b", 1), ("c", 1), ("d", 1)]
    too_few = run(sharing, "take", queue, "--max", "1", "--timeout", "0.5")
    assert (too_few.code, too_few.err) == (1, "tailrace: only 0 of 1 messages came.\n")


def test_a_queue_is_listed_before_and_after_its_first_use(sharing: str, queue: str) -> None:
    assert queue in run(sharing, "list").out.splitlines()
    assert described(sharing, queue)["state"] == "unused"
    send(sharing, queue, "a")
    assert taken(sharing, queue) == [("a", 1)]
    assert {"queue": queue} in json.loads(run(sharing, "list", "--json").out)
    facts = described(sharing, queue)
    assert (facts["state"], facts["waiting"], facts["members"]) == ("empty", 0, [])
    assert facts["settings"] == {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "3"}
    (stats,) = json.loads(run(sharing, "stats", queue, "--json").out)
    assert stats == {"queue": queue, "waiting": 0, "workers": 0, "dead": None}
    assert any(queue in line for line in run(sharing, "stats").out.splitlines())


@pytest.mark.parametrize(
    ("code", "again"),
    [(0, []), (75, [("a", 2)])],
)
def test_the_exit_code_of_a_command_decides(
    sharing: str, queue: str, code: int, again: Sequence[tuple[str, int]]
) -> None:
    send(sharing, queue, "a")
    ran = run(sharing, "take", queue, "--max", "1", "--exec", f'cat; echo " $MESSAGE_OFFSET"; exit {code}')
    assert (ran.code, ran.out, ran.err) == (0, "a 0\n", "")
    assert taken(sharing, queue) == again


def test_a_command_that_fails_is_tried_until_the_delivery_limit(sharing: str, queue: str) -> None:
    send(sharing, queue, "a")
    ran = run(sharing, "take", queue, "--timeout", "1", "--exec", "exit 3")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        *(
            f"the command failed with code 3 for offset 0 of {queue}-0, delivery {count}; it was released"
            for count in (1, 2, 3)
        ),
        "tailrace: 3 of 3 deliveries failed.",
    ]
    assert taken(sharing, queue) == []


def test_a_command_that_cannot_be_started_uses_up_one_try(sharing: str, queue: str) -> None:
    send(sharing, queue, "a", "b")
    ran = run(sharing, "take", queue, "--timeout", "1", "--exec", "no-such-command-anywhere")
    assert ran.code == 1
    assert "the shell ended with code 127" in ran.err
    assert taken(sharing, queue) == [("a", 2), ("b", 1)]


def test_several_workers(sharing: str, queue: str, tmp_path: Path) -> None:
    send(sharing, queue, "a", "b", "c")
    all_here = "[ -e {0}-0 ] && [ -e {0}-1 ] && [ -e {0}-2 ]"
    meet = f"touch {{0}}-$MESSAGE_OFFSET; until {all_here}; do sleep 0.05; done; value=$(cat); echo $value"
    ran = run(sharing, "take", queue, "--max", "3", "--workers", "3", "--exec", meet.format(tmp_path / "here"))
    assert sorted(ran.out.split()) == ["a", "b", "c"]


def test_locks_that_are_only_held_end_with_the_command(sharing: str, queue: str) -> None:
    send(sharing, queue, "a", "b")
    words = [sys.executable, "-m", "tailrace", "queue", "take", queue, "--no-ack", "-b", sharing]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    ) as holding:
        assert holding.stdout is not None
        assert [holding.stdout.readline() for _ in range(2)] == ["a\n", "b\n"]
        assert taken(sharing, queue) == []
        holding.send_signal(signal.SIGINT)
        assert holding.wait(30) == 130
    assert taken(sharing, queue) == [("a", 2), ("b", 2)]


def test_one_message_by_hand(sharing: str, queue: str) -> None:
    send(sharing, queue, "a", "b", "c", "d")
    not_next = run(sharing, "ack", queue, "1")
    assert not_next.code == 1
    assert f"The next message is offset 0 of {queue}-0." in not_next.err
    found = run(sharing, "ack", queue, "1", "--reach", "5")
    assert (found.code, found.err.splitlines()[-1]) == (0, f"accepted offset 1 of {queue}-0")
    assert run(sharing, "reject", queue, "0").err == f"rejected offset 0 of {queue}-0\n"
    assert run(sharing, "release", queue, "2").err == f"released offset 2 of {queue}-0\n"
    assert "has no partition 7" in run(sharing, "ack", queue, "1", "--partition", "7").err
    assert taken(sharing, queue) == [("c", 2), ("d", 1)]


@pytest.mark.parametrize("used", [False, True])
def test_purge(sharing: str, queue: str, used: bool) -> None:
    send(sharing, queue, "a", "b", "c")
    if used:
        assert run(sharing, "take", queue, "--max", "1").out == "a\n"
    waiting = 2 if used else 3
    assert run(sharing, "purge", queue).err.startswith(f"{waiting} messages of {queue} wait; nothing was changed")
    assert run(sharing, "purge", queue, "--execute").err == f"skipped {waiting} messages of {queue}\n"
    send(sharing, queue, "d")
    assert taken(sharing, queue) == [("d", 1)]


def test_redrive(sharing: str, queue: str) -> None:
    dead = f"{queue}-dead"
    assert run(sharing, "create", dead).code == 0
    assert run(sharing, "send", dead, "-H", "__dlq.errors.group=g", "-H", "mine=x", "a", "b").code == 0
    assert run(sharing, "redrive", queue).err == f"tailrace: {queue} has no dead letter topic: name one with --from.\n"
    for _ in range(2):  # the second time there is nothing left to do
        ran = run(sharing, "redrive", queue, "--from", dead)
        assert ran.code == 0
    assert ran.err == f"redrove 0 messages of {queue}\n"
    out = [json.loads(line) for line in run(sharing, "peek", queue, "--format", "json").out.splitlines()]
    assert [one["value"] for one in out] == ["a", "b"]
    redriven = [{"name": "mine", "value": "x"}, {"name": "tailrace.redriven", "value": "1"}]
    assert [one["headers"] for one in out] == [redriven, redriven]
    run(sharing, "send", dead, "-H", "tailrace.redriven=3", "c")
    too_often = run(sharing, "redrive", queue, "--from", dead)
    assert (too_often.code, "1 messages were left" in too_often.err) == (1, True)


def test_a_queue_that_does_not_exist(sharing: str) -> None:
    for words in (("send", "no-such", "x"), ("take", "no-such"), ("peek", "no-such"), ("describe", "no-such")):
        ran = run(sharing, *words)
        assert (ran.code, ran.out) == (1, "")
        assert "`tailrace queue create no-such` creates it." in ran.err


def test_a_queue_that_exists_already(sharing: str, queue: str) -> None:
    assert "TOPIC_ALREADY_EXISTS" in run(sharing, "create", queue).err
    assert run(sharing, "create", queue, "--if-not-exists", "--lock", "20s").err == f"changed {queue}\n"
    assert "its own dead letter topic" in run(sharing, "create", queue, "--dead-letters", queue).err


def test_dead_letters_backoff_and_the_way_back() -> None:
    """Only Tailrace has these settings of a group."""
    with Broker() as broker:
        address = broker.bootstrap
        created = run(
            address, "create", "mails", "--delivery-limit", "2", "--dead-letters", "dead", "--backoff", "100ms",
            "--backoff-max", "1s", "--backoff-multiplier", "1.5",
        )  # fmt: skip
        assert (created.code, created.err) == (0, "created mails\n")
        assert described(address, "mails")["settings"] == {
            "errors.deadletterqueue.topic.name": "dead",
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": "2",
            "share.retry.backoff.max.ms": "1000",
            "share.retry.backoff.ms": "100",
            "share.retry.backoff.multiplier": "1.5",
        }
        assert run(address, "send", "mails", "--key", "k", "-H", "mine=x", "a").code == 0
        assert (
            run(address, "take", "mails", "--timeout", "1.5", "--exec", "exit 3").err.count("failed with code 3") == 2
        )
        (stats,) = json.loads(run(address, "stats", "mails", "--json").out)
        assert stats == {"queue": "mails", "waiting": 0, "workers": 0, "dead": 1}
        assert run(address, "redrive", "mails").err == "redrove 1 message of mails\n"
        shown = json.loads(run(address, "take", "mails", "--max", "1", "--format", "json").out)
        assert (shown["value"], shown["key"], shown["delivery_count"]) == ("a", "k", 1)
        assert shown["headers"] == [{"name": "mine", "value": "x"}, {"name": "tailrace.redriven", "value": "1"}]
