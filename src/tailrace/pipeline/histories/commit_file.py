"""Read the file of one commit, and check that the commit is complete.

Our commits start with a manifest, or create the history. They name each data file twice: in the manifest, and in an
`add` action for other Delta readers. A commit file that was emptied, truncated or edited lacks one of the two. Another
program's commit has no manifest, and names its engine.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ENGINE: Final = "tailrace"

Action = dict[str, Any]


class CommitDamaged(Exception):
    """A commit is not as it was written; the message gives the reason in a sentence."""


def actions_of(path: Path) -> list[Action]:
    """The actions of a commit. `CommitDamaged` when the commit is not complete."""
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
