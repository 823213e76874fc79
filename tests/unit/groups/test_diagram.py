"""docs/groups.md shows the state table as it is. `python -m tests.unit.groups.test_diagram` draws it anew."""

from pathlib import Path

from tailrace.groups.states import State, transitions

page = Path(__file__).parents[3] / "docs" / "groups.md"
begin, end = "<!-- made from groups/states.py -->\n", "<!-- up to here -->\n"


def diagram() -> str:
    """Mermaid, one arrow for each pair of states, and a table with a row for each row."""
    causes: dict[tuple[State, State], list[str]] = {}
    for (state, cause), to in transitions.items():
        causes.setdefault((state, to), []).append(cause.value)
    arrows = [f"    {state.value} --> {to.value}: {'<br/>'.join(why)}\n" for (state, to), why in causes.items()]
    rows = [f"| {state.value} | {cause.value} | {to.value} |\n" for (state, cause), to in transitions.items()]
    starts = "    [*] --> Empty: is new\n    [*] --> Stable: is read from the log\n"
    mermaid = f"```mermaid\nstateDiagram-v2\n{starts}{''.join(arrows)}```\n"
    return f"{mermaid}\n| in | when it | becomes |\n|---|---|---|\n{''.join(rows)}"


def drawn(text: str) -> str:
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + diagram() + end + after


def test_the_page_shows_the_table_as_it_is() -> None:
    text = page.read_text()
    assert text == drawn(text), "draw it anew: python -m tests.unit.groups.test_diagram"


if __name__ == "__main__":
    page.write_text(drawn(page.read_text()))
