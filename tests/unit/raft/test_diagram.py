"""docs/raft.md shows the current state table. `python -m tests.unit.raft.test_diagram` redraws it."""

from tailrace.raft.roles import TRANSITIONS
from tests.unit.state_tables import Page

page = Page("raft.md", "raft/roles.py", {"unattached": "is a voter", "observer": "is not a voter"})


def test_the_page_shows_the_table_as_it_is() -> None:
    drawn = page.drawn(TRANSITIONS)
    assert page.path.read_text() == drawn, "redraw it: python -m tests.unit.raft.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(TRANSITIONS))
