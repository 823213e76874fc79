"""docs/transactions.md shows the state table; `python -m tests.unit.transactions.test_diagram` regenerates it."""

from tailrace.transactions.states import TRANSITIONS
from tests.unit.state_tables import Page

page = Page("transactions.md", "transactions/states.py", {"Empty": "is initialised the first time"})


def test_the_page_shows_the_current_table() -> None:
    drawn = page.drawn(TRANSITIONS)
    assert page.path.read_text() == drawn, "regenerate it: python -m tests.unit.transactions.test_diagram"


if __name__ == "__main__":
    page.path.write_text(page.drawn(TRANSITIONS))
