"""docs/groups.md shows the state table; `python -m tests.unit.groups.consumer.test_diagram` regenerates it."""

from tailrace.groups.consumer.states import STEPS
from tests.unit.state_tables import Page

page = Page("groups.md", "groups/consumer/states.py", {"Stable": "joins without partitions"})


def test_the_page_shows_the_current_table() -> None:
    drawn = page.drawn(STEPS)
    assert page.path.read_text() == drawn, "regenerate it: python -m tests.unit.groups.consumer.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(STEPS))
