"""docs/groups.md shows the state table as it is. `python -m tests.unit.groups.test_diagram` draws it anew."""

from tailrace.groups.states import TRANSITIONS
from tests.unit.state_tables import Page

page = Page("groups.md", "groups/states.py", {"Empty": "is new", "Stable": "is read from the log"})


def test_the_page_shows_the_table_as_it_is() -> None:
    drawn = page.drawn(TRANSITIONS)
    assert page.path.read_text() == drawn, "draw it anew: python -m tests.unit.groups.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(TRANSITIONS))
