"""The page of a report: it opens offline, its time axis is true, its axes have units, and names are only names."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from tailrace.pipeline.analysis.distributions import size_name
from tailrace.pipeline.analysis.job import analyze
from tailrace.pipeline.analysis.over_time import log_ticks
from tailrace.pipeline.analysis.page import byte_text, page
from tailrace.pipeline.analysis.report import PARTITIONS_DRAWN_MAX, PartitionShare, TopicLine
from tailrace.pipeline.analysis.steps import duration_text, step_for
from tailrace.pipeline.failure import PipelineFailed
from tests.pipeline.report_pages import HOSTILE, read, report, step, traces

BROWSER_TIMEOUT_S = 120.0


def test_it_opens_offline() -> None:
    found = read(page(report("orders", "bills")))
    assert found.loads == []
    assert {"link", "img", "iframe", "object", "form"}.isdisjoint(found.tags)
    assert "default-src 'none'" in found.policy
    assert "http" not in found.policy


def test_time_is_true_and_gaps_are_seen() -> None:
    found = traces(read(page(report("orders", "bills"))), "over-time", "y")
    assert list(found) == ["orders", "bills"]
    for trace in found.values():
        assert list(zip(trace["x"], trace["y"], strict=True)) == [
            ("2026-11-17T07:20:00", 3.0),
            ("2026-11-17T07:20:01", 5.0),
            ("2026-11-17T07:20:02", 0.0),  # nothing from here on,
            ("2026-11-17T07:24:00", 7.0),  # for four minutes
            ("2026-11-17T07:24:01", 0.0),
            ("2026-11-17T07:29:00", 2.0),
            ("2026-11-17T07:29:01", 0.0),
        ]
        assert trace["line"]["shape"] == "hv"  # a value holds for its step


def test_a_delay_is_broken_where_there_are_no_records() -> None:
    found = traces(read(page(report("orders"))), "over-time", "y3")
    assert list(found) == ["orders p50", "orders p90", "orders p99"]
    assert list(zip(found["orders p90"]["x"], found["orders p90"]["y"], strict=True)) == [
        ("2026-11-17T07:20:01", 8),
        ("2026-11-17T07:20:02", 8),
        ("2026-11-17T07:20:02", None),
        ("2026-11-17T07:24:00", 8),
        ("2026-11-17T07:24:01", 8),
        ("2026-11-17T07:24:01", None),
    ]
    assert found["orders p90"]["marker"]["size"] == [6, 0, 0, 6, 0, 0]  # a second alone is marked


@pytest.mark.parametrize(
    ("delay", "unit", "kind"),
    [
        ((7, 8, 9), "ms", "linear"), ((7, 8, 900), "ms", "log"), ((0, 8, 900), "ms", "linear"),
        ((-5, 8, 59_000), "s", "linear"), ((1_000, 20_000, 300_000), "s", "log"),
        ((60_000_000, 61_000_000, 64_000_000), "h", "linear"), ((1, 1, 10**10), "d", "log"),
    ],
)  # fmt: skip
def test_the_axis_of_a_delay_fits_it(delay: tuple[int, int, int], unit: str, kind: str) -> None:
    line = TopicLine(name="orders", steps=(step(0, 3, delay),))
    axis = read(page(replace(report("orders"), lines=(line,)))).figures["over-time"]["layout"]["yaxis3"]
    assert (axis["title"]["text"], axis["type"]) == (unit, kind)


def test_the_labels_of_a_logarithmic_axis() -> None:
    assert log_ticks([3, 40]) == (1, 2, 5, 10, 20, 50, 100, 200, 500)
    assert log_ticks([0.02, 10**6]) == tuple(10.0**power for power in range(-2, 7))
    assert [log_ticks(values) for values in ([], [0, 50], [-1, 50], [5, 49])] == [(), (), (), ()]


def test_lag_stays_until_the_end() -> None:
    trace = traces(read(page(report("orders"))), "over-time", "y5")["billing on orders"]
    assert (trace["x"][-1], trace["y"]) == ("2026-11-17T07:29:01", [4, 9, 9])


def test_every_axis_has_a_title_with_its_unit() -> None:
    figures = read(page(report("orders"))).figures
    layout = figures["over-time"]["layout"]
    units = [layout[f"yaxis{number}"]["title"]["text"] for number in ("", 2, 3, 4, 5)]
    assert units == ["messages/s", "bytes/s", "ms", "s", "offsets"]
    assert layout["xaxis5"]["title"]["text"] == "time (UTC), in steps of 1 s"
    assert {layout[f"xaxis{number}"]["type"] for number in ("", 2, 3, 4, 5)} == {"date"}
    assert [layout[f"yaxis{number}"]["type"] for number in (2, 4)] == ["linear", "log"]
    for name, x, y in (
        ("sizes", "size of a message's value (bytes)", "share of the topic's messages (%)"),
        ("shares", "share of the topic's messages (%)", "topic"),
    ):
        layout = figures[name]["layout"]
        assert (layout["xaxis"]["title"]["text"], layout["yaxis"]["title"]["text"]) == (x, y)


def test_hovering_says_how_many() -> None:
    found = read(page(report("orders")))
    rate, size = (traces(found, "over-time", axis)["orders"] for axis in ("y", "y2"))
    assert "%{y:,.4~g} messages/s (%{customdata} in 1 s)" in rate["hovertemplate"]
    assert (rate["customdata"][:3], size["customdata"][:3]) == (["3", "5", "0"], ["300", "500", "0"])
    (row,) = traces(found, "shares").values()
    assert row["customdata"][0] == ["0", pytest.approx(100 * 12 / 17), 12, pytest.approx(4 * 12 / 17)]


def test_sizes_and_shares() -> None:
    found = read(page(report("orders")))
    bars = traces(found, "sizes")["orders"]
    assert dict(zip(bars["x"], bars["y"], strict=True))["64-127<br>B"] == pytest.approx(100 * 3 / 17)
    assert (len(bars["x"]), bars["x"][0], bars["y"][1:7]) == (9, "0<br>B", [0.0] * 6)
    assert found.figures["shares"]["layout"]["yaxis"]["ticktext"] == ["orders<br><sup>2 of 4 partitions empty</sup>"]


def test_the_head_has_the_totals() -> None:
    text = read(page(replace(report("orders", "bills"), history="./past"))).text
    for told in ("History ./past", "8 partitions", "34", "3.4 kB", "3,400 bytes", "9 min", "2026-11-17 07:20:00 to"):
        assert told in text
    assert "No record has a header sent-at" not in text


def test_what_cannot_be_shown_is_said() -> None:
    quiet = TopicLine(name="orders", steps=(replace(step(0, 3), archive_delay=None),))
    found = read(page(replace(report("orders"), lines=(quiet,), lags=())))
    assert "No record has a header sent-at (milliseconds since 1970)" in found.text
    assert "Archive the topic __consumer_offsets" in found.text
    assert "The archive delay is not shown" in found.text
    assert "yaxis3" not in found.figures["over-time"]["layout"]  # messages and bytes are two
    nothing = read(page(report()))
    assert "The history has no records." in nothing.text
    assert nothing.figures == {}


def test_names_are_only_names() -> None:
    """Of topics and groups, in tables, figures and the head: none is markup, and none is a template."""
    made = report(HOSTILE)
    found = read(page(replace(made, history=HOSTILE, lags=(replace(made.lags[0], group=HOSTILE),))))
    plain = read(page(made))
    assert found.tags == plain.tags == read(page(report("orders"))).tags
    shown = escape(HOSTILE, quote=False)
    for figure in found.figures.values():
        for trace in figure["data"]:
            assert trace["meta"].startswith(shown)
            assert "<img" not in trace["name"]
            assert "onerror" not in trace["hovertemplate"]
    labels = found.figures["shares"]["layout"]["yaxis"]["ticktext"]
    assert not re.search(r"<(?!br>|/?sup>)", "".join(labels))
    assert found.text.count(HOSTILE) == 3  # title, head and table: a browser shows them as they are


def test_very_many_partitions_share_a_piece() -> None:
    many = tuple(PartitionShare(topic="orders", partition=number, messages=10) for number in range(250))
    (row,) = traces(read(page(replace(report("orders"), partitions=many))), "shares").values()
    assert len(row["x"]) == PARTITIONS_DRAWN_MAX + 1
    assert row["customdata"][-1] == ["150 others", pytest.approx(60), 1500, pytest.approx(1)]


def test_a_legend_that_is_too_long_for_a_row_is_a_column() -> None:
    names = [f"a-topic-with-a-rather-long-name-of-number-{number}" for number in range(8)]
    found = [read(page(report(*some))).figures["over-time"]["layout"]["legend"] for some in (names, names[:2])]
    assert [legend["orientation"] for legend in found] == ["v", "h"]


@pytest.mark.parametrize(
    ("span_s", "points", "step_s"),
    [
        (0, 10, 1), (10, 10, 1), (10.5, 10, 2), (590, 10, 60), (3_601, 10, 600), (864_001, 10, 2 * 86_400),
        (1e9, 1000, 12 * 86_400),
    ],
)  # fmt: skip
def test_steps_are_as_narrow_as_they_may_be(span_s: float, points: int, step_s: int) -> None:
    assert step_for(span_s, points) == step_s
    assert span_s / step_s <= points


def test_what_people_read() -> None:
    assert [duration_text(one) for one in (0, 1, 90, 7200, 90_061)] == ["0 s", "1 s", "1 min 30 s", "2 h", "1 d 1 h"]
    assert [size_name(bits) for bits in (0, 1, 2, 7, 11, 21)] == [
        "0 B",
        "1 B",
        "2-3 B",
        "64-127 B",
        "1-2 KiB",
        "1-2 MiB",
    ]
    assert [byte_text(one) for one in (0, 999, 1000, 96_387_742)] == ["0 B", "999 B", "1 kB", "96.4 MB"]


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(PipelineFailed, match=r"a report needs plotly.* pip install 'tailrace\[report\]'"):
        analyze(None, tmp_path, report=tmp_path / "r.html")  # asked before Spark is


def test_the_library_is_imported_to_draw_alone() -> None:
    code = "import sys; from tailrace.pipeline.analysis import job, page; print('plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.foreign
def test_a_browser_draws_it_without_a_network(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium")
    (tmp_path / "r.html").write_text(page(report(HOSTILE, "bills")))
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    command = [browser, *words, f"--user-data-dir={tmp_path / 'browser'}", (tmp_path / "r.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BROWSER_TIMEOUT_S)
    found = read(done.stdout)
    assert done.stdout.count('class="main-svg"') >= 3
    assert 'class="legendtext"' in done.stdout
    assert "img" not in found.tags
    buttons = re.findall(r'class="modebar-btn[^>]*data-title="(\w+)', done.stdout)
    assert set(buttons) == {"Download", "Zoom", "Pan", "Reset"}  # and none that shares a chart
