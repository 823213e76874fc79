"""The gate runs every check and reports failures; the Makefile has every documented target."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks.__main__ import Check, failed, gate
from checks.rules import FILE_RULES, findings

root = Path(__file__).parents[2]
TARGETS = [
    "setup",
    "run",
    "demo",
    "test",
    "check",
    "bench",
    "bench-peers",
    "interop",
    "fuzz",
    "simulate",
    "chaos",
    "help",
]


def test_the_gate_has_every_check() -> None:
    assert [check.name for check in gate(root)] == ["lint", "format", "types", "layers", "rules"]


def test_the_output_of_a_failing_check_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; print('line 7 is wrong'); sys.exit(1)"
    assert failed(Check("planted", (sys.executable, "-c", program), ""), root)
    shown = capfd.readouterr().out
    assert "planted  FAILED" in shown
    assert "line 7 is wrong" in shown


def test_a_passing_check_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    assert not failed(Check("planted", (sys.executable, "-c", "print('chatter')"), ""), root)
    assert "chatter" not in capfd.readouterr().out


def test_the_rules_run_over_a_whole_tree(tmp_path: Path) -> None:
    log = tmp_path / "src/tailrace/log"
    log.mkdir(parents=True)
    (log / "segment.py").write_text('"""Segments."""\n')
    assert findings(tmp_path) == []
    (log / "manager.py").write_text("import time\nfor x in {1, 2}: ...\n" + "x = 1\n" * 1000)
    wrong = " ".join(finding.wrong for finding in findings(tmp_path))
    for expected in ("uses time", "iterates over a set", "no docstring", "contains 'manager'", "1002 lines"):
        assert expected in wrong


def test_every_rule_runs() -> None:
    assert [rule.__name__ for rule in FILE_RULES] == [
        "bypasses_ports",
        "impure_imports",
        "depends_on_set_order",
        "vague_names",
        "todo_without_issue",
        "machine_paths",
        "file_too_large",
        "untidy_whitespace",
        "missing_docstring",
    ]


def make(*words: str) -> str:
    # Without the flags of a make that runs this suite.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"
    }
    done = subprocess.run(["make", *words], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_is_the_default_and_lists_every_target() -> None:
    listed = [line.split()[1] for line in make().splitlines()]
    assert set(TARGETS) <= set(listed)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned(target: str) -> None:
    make("--dry-run", target)


def test_the_gate_of_the_project_is_check_and_test() -> None:
    assert "make check test" in (root / ".ci/run").read_text()
    planned = make("--dry-run", "check", "test")
    assert planned.index("-m checks") < planned.index("-m pytest")
