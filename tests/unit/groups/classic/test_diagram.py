"""docs/groups.md shows the state table; `python -m tests.unit.groups.classic.test_diagram` regenerates it."""

from tailrace.groups.classic.states import TRANSITIONS
from tests.unit.state_tables import Page

page = Page("groups.md", "groups/classic/states.py", {"Empty": "is created", "Stable": "is loaded from the log"})


def test_the_page_shows_the_current_table() -> None:
    drawn = page.drawn(TRANSITIONS)
    assert page.path.read_text() == drawn, "regenerate it: python -m tests.unit.groups.classic.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(TRANSITIONS))
