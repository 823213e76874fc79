"""The interop ledger only grows, and the same outcome gives the same bytes."""

from pathlib import Path

from tests.interop.ledger import Entry, Tried, ledger_path, settle
from tests.interop.ledger_page import Outcome

CLIENTS = {"alpha": "1.0", "beta": "2.0", "gamma": "3.0"}


def tried(
    feature: str,
    client: str,
    outcome: Outcome = "passes",
    *,
    order: int = 0,
    long: bool = False,
    area: str = "Reading",
) -> Tried:
    entry = Entry(
        area=area,
        feature=feature,
        client=client,
        version=None if outcome == "not tried" else CLIENTS[client],
        column=list(CLIENTS).index(client),
        order=order,
        of=4,
        long=long,
    )
    return Tried(entry=entry, outcome=outcome)


def green(feature: str, order: int = 0) -> list[Tried]:
    return [tried(feature, client, order=order) for client in ("alpha", "beta")]


def test_the_same_run_writes_the_same_page_in_any_order_of_reports() -> None:
    run = [*green("from the start", 0), *green("from the end", 1)]
    first = settle(run, "").text
    assert settle(run[::-1], first).text == first
    assert "| from the start | passes | passes |" in first


def test_a_feature_that_fails_for_the_first_time_is_written_down() -> None:
    verdict = settle([tried("from the start", "alpha"), tried("from the start", "beta", "fails")], "")
    assert not verdict.lost
    assert "| from the start | passes | fails |" in verdict.text


def test_a_feature_that_stood_as_passing_and_fails_is_lost_and_the_page_stays() -> None:
    before = settle(green("from the start"), "").text
    verdict = settle([tried("from the start", "alpha"), tried("from the start", "beta", "fails")], before)
    assert verdict.lost == [("Reading", "from the start", "beta")]
    assert verdict.text == before


def test_a_feature_that_is_no_longer_tried_is_lost() -> None:
    before = settle([*green("from the start", 0), *green("from the end", 1)], "").text
    assert settle(green("from the start"), before).lost == [
        ("Reading", "from the end", "alpha"),
        ("Reading", "from the end", "beta"),
    ]


def test_one_failing_test_of_several_fails_the_feature() -> None:
    outcomes: tuple[Outcome, ...] = ("passes", "fails", "not tried")
    run = [tried("from the start", "alpha", outcome) for outcome in outcomes]
    assert "| from the start | fails |" in settle(run, "").text


def test_a_client_that_is_not_installed_keeps_its_column() -> None:
    before = settle(green("from the start"), "").text
    run = [tried("from the start", "alpha"), tried("from the start", "beta", "not tried")]
    assert settle(run, before).lost == []
    assert settle(run, before).text == before


def test_what_needs_a_toolchain_stands_in_a_run_without_any() -> None:
    run = [
        tried("from the start", "alpha"),
        tried("restart", "beta", order=1, long=True),
        tried("from the start", "gamma", order=2, long=True),
        tried("restart", "gamma", order=3, long=True),
    ]
    page = settle(run, "").text
    verdict = settle([tried("from the start", "alpha")], page)
    assert (verdict.lost, verdict.text) == ([], page)


def test_an_area_that_is_long_stands_in_a_run_without_it() -> None:
    long = tried("from the start", "alpha", order=1, long=True, area="Share groups")
    page = settle([tried("from the start", "alpha"), long], "").text
    verdict = settle([tried("from the start", "alpha")], page)
    assert (verdict.lost, verdict.text) == ([], page)
    newer = settle([tried("from the start", "alpha")], page.replace("1.0", "0.9"))
    assert newer.text == page
    assert settle([tried("from the start", "alpha", long=True)], page).lost == [
        ("Share groups", "from the start", "alpha")
    ]


def test_what_needs_a_toolchain_is_lost_when_others_of_its_kind_were_tried() -> None:
    both = [tried("from the start", "beta", long=True), tried("restart", "beta", order=1, long=True)]
    page = settle([tried("from the start", "alpha"), *both], "").text
    assert settle([tried("from the start", "alpha"), both[0]], page).lost == [("Reading", "restart", "beta")]


def test_what_was_never_tried_does_not_stand_as_passing() -> None:
    run = [tried("from the start", "alpha"), tried("from the start", "beta", "not tried")]
    page = settle(run, "").text
    assert "| from the start | passes | not tried |" in page
    assert "| from the start | passes | passes |" in settle(green("from the start"), page).text


def test_a_new_version_is_written_down() -> None:
    before = settle(green("from the start"), "").text
    assert settle(green("from the start"), before.replace("1.0", "0.9")).text == before


def test_another_broker_has_no_say_in_the_ledger_unless_asked() -> None:
    own = ledger_path({})
    assert own is not None
    assert own.name == "LEDGER.md"
    assert ledger_path({"TAILRACE_INTEROP_BOOTSTRAP": "127.0.0.1:9092"}) is None
    named = {"TAILRACE_INTEROP_BOOTSTRAP": "127.0.0.1:9092", "TAILRACE_INTEROP_LEDGER": "kafka.md"}
    assert ledger_path(named) == Path("kafka.md")
