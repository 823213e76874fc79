"""docs/transactions.md shows the state table as it is. `python -m tests.unit.transactions.test_diagram` draws it."""

from tailrace.transactions.states import TRANSITIONS
from tests.unit.state_tables import Page

page = Page("transactions.md", "transactions/states.py", {"Empty": "gets its first producer"})


def test_the_page_shows_the_table_as_it_is() -> None:
    drawn = page.drawn(TRANSITIONS)
    assert page.path.read_text() == drawn, "draw it: python -m tests.unit.transactions.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(TRANSITIONS))
