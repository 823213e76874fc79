"""Pure rooms know neither the loop nor the shell (DESIGN, section 3)."""

import pytest

from checks.purity import knows_the_shell
from tests.tidy.planted import planted


@pytest.mark.parametrize("room", ["raft", "cluster", "groups", "queues", "transactions"])
@pytest.mark.parametrize(
    "code",
    [
        "import asyncio",
        "from asyncio import Future",
        "from tailrace import ports",
        "from tailrace.ports.clock import Clock",
        "import tailrace.log.segment",
        "from tailrace.broker import node",
    ],
)
def test_the_shell_is_seen(room: str, code: str) -> None:
    assert len(knows_the_shell(planted(code, f"src/tailrace/{room}/machine.py"))) == 1


def test_lower_pure_rooms_and_look_alikes_are_fine() -> None:
    code = "from tailrace.model import ids\nfrom tailrace.records.header import stamp\nimport asyncio_of_ours"
    assert knows_the_shell(planted(code, "src/tailrace/raft/machine.py")) == []


def test_the_shell_may_know_itself() -> None:
    assert knows_the_shell(planted("import asyncio", "src/tailrace/broker/node.py")) == []
