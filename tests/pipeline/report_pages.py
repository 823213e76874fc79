"""Reports for tests, made by hand, and what a page of one holds: its figures as JSON, and all that it would load."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from tailrace.pipeline.analysis.report import (
    LagLine,
    PartitionShare,
    Report,
    SizeLine,
    Step,
    TopicLine,
    TopicTotal,
)
from tailrace.pipeline.analysis.tables import ResultTable

START_MS = 1_794_900_000_000  # 2026-11-17 07:20:00 UTC
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script><b>%{x}</b> \"a\" 'b' &amp; \u2028"


def step(second: int, messages: int, latency: tuple[int, int, int] | None = None) -> Step:
    delay = (1_000, 20_000, 300_000)
    at_ms = START_MS + 1000 * second
    return Step(at_ms=at_ms, messages=messages, bytes=100 * messages, latency=latency, archive_delay=delay)


def report(*names: str) -> Report:
    """Of topics with three seconds of records that lie minutes apart, and a group on each that is behind."""
    behind = ((START_MS + 1000, 4), (START_MS + 2000, 9))
    steps = (step(0, 3), step(1, 5, (7, 8, 9)), step(240, 7, (7, 8, 9)), step(540, 2))
    return Report(
        history="past",
        step_s=1,
        totals=tuple(_total(name) for name in names),
        lines=tuple(TopicLine(name=name, steps=steps) for name in names),
        sizes=tuple(SizeLine(name=name, counts=((0, 1), (7, 3), (8, 13))) for name in names),
        partitions=tuple(
            PartitionShare(topic=name, partition=number, messages=count)
            for name in sorted(names)
            for number, count in enumerate((12, 5, 0, 0))
        ),
        lags=tuple(LagLine(group="billing", topic=name, points=behind) for name in names),
        lag_lines_in_all=len(names),
        tables=(ResultTable(title="Topics", columns=("topic", "records"), rows=tuple((name, 17) for name in names)),),
    )  # fmt: skip


def _total(name: str) -> TopicTotal:
    last_ms = START_MS + 540_000
    return TopicTotal(
        topic=name, messages=17, bytes=1700, first_ms=START_MS, last_ms=last_ms, untimed=0,
        clock="producers (CreateTime)",
    )  # fmt: skip


@dataclass(slots=True)
class Page(HTMLParser):
    """What a page holds; `loads` are the addresses of all that a browser would fetch, `tags` those that there are."""

    figures: dict[str, Any] = field(default_factory=dict)
    loads: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    text: str = ""
    policy: str = ""
    _figure: str = ""
    _is_script: bool = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        self._is_script = tag in ("script", "style")
        self._figure = told.get("data-figure") or ""
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._figure:
            self.figures[self._figure] = json.loads(data)
        elif not self._is_script:
            self.text += data


def read(text: str) -> Page:
    page = Page()
    HTMLParser.__init__(page)
    page.feed(text)
    page.close()
    return page


def traces(page: Page, figure: str, axis: str = "") -> dict[str, Any]:
    """Those of a figure, or of one of its panels (`y`, `y2`, …), by their whole names."""
    found = [trace for trace in page.figures[figure]["data"] if not axis or trace.get("yaxis", "y") == axis]
    return {trace["meta"]: trace for trace in found}
