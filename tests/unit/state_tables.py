"""What every state table is held to: its transcripts play as written, take every row, and its page shows it as it is.

A transcript is text: each line a command, the indented lines under it what follows. A page has a diagram and a table
between two marks, drawn from the code.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

tests = Path(__file__).parents[1]
Transitions = Mapping[Any, Any]  # (state, cause) to state, each an Enum
Command = Callable[..., None]  # a method of a stage
UP_TO_HERE = "<!-- up to here -->\n"


class Stage(Protocol):
    @property
    def moves(self) -> Iterable[tuple[Any, Any, Any]]:
        """The transitions taken so far, in all transcripts: from a state, by a cause, to a state."""

    def play(self, line: str) -> list[str]:
        """Carry out a command; what follows."""


def transcripts_of(room: str) -> list[Path]:
    return sorted((tests / "transcripts" / room).glob("*.txt"))


def replay(text: str, stage: Stage) -> str:
    """The transcript as the code writes it."""
    lines = []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {outcome}" for outcome in stage.play(line)]
    return "\n".join(lines) + "\n"


def carry_out(commands: Mapping[str, Command], stage: Stage, line: str) -> Command:
    """Call the command whose pattern the line matches, with the pattern's groups."""
    for pattern, command in commands.items():
        found = re.fullmatch(pattern, line)
        if found:
            command(stage, *found.groups(default=""))
            return command
    raise ValueError(f"no such command: {line}")


def label(state: Enum) -> str:
    """How transcripts and pages call a state: its value, or its name if the value is a number."""
    return state.value if isinstance(state.value, str) else state.name.capitalize()


class Writing(Stage, Protocol):
    lines: list[str]  # what the command has led to


def outcome(commands: Mapping[str, Command], silent: Collection[Command], stage: Writing, line: str) -> list[str]:
    """Carry out a command; the lines that it led to. Only `silent` commands may have none."""
    stage.lines = []
    command = carry_out(commands, stage, line)
    return stage.lines or ([] if command in silent else ["nothing happens"])


class Page:
    """A page of the docs that shows a table; `starts` are the arrows into it."""

    def __init__(self, name: str, made_from: str, starts: Mapping[str, str]) -> None:
        self.path = tests.parent / "docs" / name
        self._begin = f"<!-- made from {made_from} -->\n"
        self._starts = starts

    def drawn(self, transitions: Transitions) -> str:
        """The page as it should be."""
        before, _, rest = self.path.read_text().partition(self._begin)
        _, _, after = rest.partition(UP_TO_HERE)
        return before + self._begin + self._diagram(transitions) + UP_TO_HERE + after

    def _diagram(self, transitions: Transitions) -> str:
        """Mermaid, one arrow for each pair of states, and a table with a row for each row."""
        causes: dict[tuple[Any, Any], list[str]] = {}
        for (state, cause), to in transitions.items():
            causes.setdefault((state, to), []).append(cause.value)
        starts = "".join(f"    [*] --> {state}: {why}\n" for state, why in self._starts.items())
        arrows = [f"    {label(state)} --> {label(to)}: {'<br/>'.join(why)}\n" for (state, to), why in causes.items()]
        rows = [f"| {label(state)} | {cause.value} | {label(to)} |\n" for (state, cause), to in transitions.items()]
        mermaid = f"```mermaid\nstateDiagram-v2\n{starts}{''.join(arrows)}```\n"
        return f"{mermaid}\n| in | when it | becomes |\n|---|---|---|\n{''.join(rows)}"
