"""The tables as one HTML page that needs nothing else: its style and its plots are in it."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from tailrace.pipeline.analysis.tables import Answer

WIDTH: Final = 900
HEIGHT: Final = 160
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1c2430; }
table { border-collapse: collapse; margin: .5rem 0 2rem; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #dde3ea; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; background: #f5f7fa; } rect { fill: #2f6f9f; } .none { color: #68737f; }
"""


def page(history: str, answers: Sequence[Answer]) -> str:
    parts = [_section(answer) for answer in answers]
    head = f"<meta charset='utf-8'><title>{escape(history)}</title><style>{STYLE}</style>"
    body = f"<h1>{escape(history)}</h1>{''.join(parts)}"
    return f"<!doctype html>\n<html lang='en'><head>{head}</head><body>{body}</body></html>\n"


def _section(answer: Answer) -> str:
    title = f"<h2>{escape(answer.title)}</h2>"
    if not answer.rows:
        return f"{title}<p class='none'>nothing</p>"
    return title + (_plots(answer) if answer.plot else "") + _table(answer)


def _plots(answer: Answer) -> str:
    """One plot, or one for each of those that the answer tells apart, with its name above."""
    if not answer.by:
        return _plot(answer, answer.rows)
    places = [answer.columns.index(name) for name in answer.by]
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for row in answer.rows:
        parts.setdefault(", ".join(str(row[place]) for place in places), []).append(row)
    return "".join(f"<h3>{escape(name)}</h3>{_plot(answer, rows)}" for name, rows in parts.items())


def _table(answer: Answer) -> str:
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in answer.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in answer.rows)
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
        return f"<td class='number'>{text}</td>"
    return f"<td>{escape(str(value))}</td>"


def _plot(answer: Answer, rows: Sequence[tuple[Any, ...]]) -> str:
    """Bars, one a row; what a bar stands for is its title."""
    number = answer.columns.index(answer.plot)
    values = [float(row[number] or 0) for row in rows]
    highest, step = max(values) or 1.0, WIDTH / len(values)
    bars = "".join(
        f"<rect x='{place * step:.1f}' y='{HEIGHT - HEIGHT * value / highest:.1f}' width='{max(step - 1, 0.5):.1f}' "
        f"height='{HEIGHT * value / highest:.1f}'><title>{escape(str(row[0]))}: {value:,.2f}</title></rect>"
        for place, (value, row) in enumerate(zip(values, rows, strict=True))
    )
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' preserveAspectRatio='none' role='img'>{bars}</svg>"
