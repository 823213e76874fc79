"""The purity rule: imports of asyncio, ports, log and broker in pure rooms are found (DESIGN, section 3)."""

import pytest

from checks.purity import impure_imports
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
def test_an_impure_import_is_found(room: str, code: str) -> None:
    assert len(impure_imports(planted(code, f"src/tailrace/{room}/machine.py"))) == 1


def test_lower_rooms_and_similar_names_are_allowed() -> None:
    code = "from tailrace.model import ids\nfrom tailrace.records.header import stamp\nimport asyncio_of_ours"
    assert impure_imports(planted(code, "src/tailrace/raft/machine.py")) == []


def test_the_rule_does_not_apply_to_the_broker() -> None:
    assert impure_imports(planted("import asyncio", "src/tailrace/broker/node.py")) == []
