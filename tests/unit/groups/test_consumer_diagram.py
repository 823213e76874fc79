"""docs/groups.md shows members' steps. `python -m tests.unit.groups.test_consumer_diagram` draws them anew."""

from tailrace.groups.consumer.states import STEPS
from tests.unit.state_tables import Page

page = Page("groups.md", "groups/consumer/states.py", {"Stable": "joins, and has nothing"})


def test_the_page_shows_the_table_as_it_is() -> None:
    drawn = page.drawn(STEPS)
    assert page.path.read_text() == drawn, "draw it anew: python -m tests.unit.groups.test_consumer_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(STEPS))
