"""One commit's file, read and held against what every commit has.

Ours begin with a manifest, or found the history, and name each file twice: in the manifest, and for other readers of
Delta tables. A file that was emptied, cut short or edited has lost one of these. Another program's commit has neither,
and says whose it is.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ENGINE: Final = "tailrace"

Action = dict[str, Any]


class CommitDamaged(Exception):
    """A commit is not what was written; the reason, in a sentence."""


def actions_of(path: Path) -> list[Action]:
    """What a commit says. `CommitDamaged` when it is not whole."""
    try:
        actions = [json.loads(line) for line in path.read_text().splitlines() if line]
    except ValueError as error:
        raise CommitDamaged(f"it cannot be parsed: {error}") from None
    wrong = _wrong_with(actions)
    if wrong:
        raise CommitDamaged(wrong)
    return actions


def _wrong_with(actions: Sequence[Action]) -> str:
    """What is wrong with a commit, in a sentence; empty when nothing is."""
    if not actions:
        return "it is empty"
    if not all(isinstance(action, dict) for action in actions):
        return "it has a line that is no action"
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    told = (info or {}).get("tailrace")
    if told is None:
        is_founding = any("metaData" in action for action in actions)
        is_of_others = info is not None and info.get("engineInfo") != ENGINE
        return "" if is_founding or is_of_others else "it has no manifest"
    listed = [file["path"] for name in ("ranges", "merged") for one in told.get(name, ()) for file in one["files"]]
    added = [action["add"]["path"] for action in actions if "add" in action]
    return "" if sorted(listed) == sorted(added) else "its manifest lists other files than it adds"
