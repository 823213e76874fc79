"""Shipped code has no switches for tests: a variable of ours is a setting of the broker, or says where to connect."""

import re
from pathlib import Path

from tailrace.model.settings import rows, variable_name

root = Path(__file__).parents[2]
WHERE_TO_CONNECT = {"TAILRACE_BOOTSTRAP", "TAILRACE_SPARK_MASTER", "TAILRACE_POSTGRES"}


def named_variables(folder: Path) -> set[str]:
    return {
        name for path in folder.rglob("*.py") for name in re.findall(r"\bTAILRACE_[A-Z][A-Z_]*\b", path.read_text())
    }


def test_every_variable_is_a_setting_or_an_address() -> None:
    assert named_variables(root / "src") - WHERE_TO_CONNECT - {variable_name(one) for one in rows()} == set()


def test_a_switch_is_seen(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('if os.environ.get("TAILRACE_WITHOUT"): ...')
    assert named_variables(tmp_path) == {"TAILRACE_WITHOUT"}
