"""`tailrace produce` with standard input from a terminal."""

import os
import pty
import signal
import subprocess
import sys

from confluent_kafka import Consumer, TopicPartition

from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, Program, environment


def typed(broker: Broker, topic: str, text: bytes, *, interrupt: bool) -> tuple[int, str]:
    """Run `produce` on a pseudo-terminal and type `text`; return the exit code and standard error."""
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tailrace", "produce", topic],
        stdin=terminal,
        stderr=subprocess.PIPE,
        env=environment(TAILRACE_BOOTSTRAP=broker.bootstrap),
        start_new_session=True,
    )
    os.close(terminal)
    assert process.stderr is not None
    shown = process.stderr.readline()
    os.write(keyboard, text)
    if interrupt:
        wait_until_sent(broker, topic)
        process.send_signal(signal.SIGINT)
    else:
        os.write(keyboard, b"\x04")
    _, rest = process.communicate(timeout=DEADLINE_S)
    os.close(keyboard)
    return process.returncode, (shown + rest).decode()


def wait_until_sent(broker: Broker, topic: str) -> None:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(DEADLINE_S)
    reader.close()
    assert message is not None
    assert message.error() is None


def test_ctrl_c_sends_and_counts_the_typed_lines(broker: Broker, tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    code, shown = typed(broker, topic, b"one\n", interrupt=True)
    assert (code, shown.splitlines()[-1]) == (130, f"sent 1 message to {topic}")


def test_a_hint_instead_of_a_progress_bar(broker: Broker, tailrace: Program, topic: str) -> None:
    code, shown = typed(broker, topic, b"one\ntwo\n", interrupt=False)
    assert (code, shown) == (0, f"Type messages, one per line; Ctrl-D ends.\nsent 2 messages to {topic}\n")
    assert tailrace("consume", topic, "--from-beginning", "--to-end").out == "one\ntwo\n"
