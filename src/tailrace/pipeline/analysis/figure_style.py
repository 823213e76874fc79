"""What all figures of a report have in common: colours, names, times, and the base layout.

Plotly renders some HTML in names, labels and hover texts, such as bold and links. Names of topics and groups are
untrusted input, so they are escaped, and never put into a hover template, where `%{…}` has a special meaning.

Figures do not set the colours of text, grid and background: the page sets them, light or dark, when it is shown.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from tailrace.pipeline.analysis.report import TOPICS_DRAWN_MAX

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# One for each topic that has its own line; of medium lightness, to be readable on white and on black.
COLOURS: Final = (
    "#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#a855f7", "#06b6d4", "#ec4899", "#84cc16", "#8b5e3c", "#6366f1",
    "#f97316", "#14b8a6",
)  # fmt: skip
COLOUR_OF_OTHERS: Final = "#94a3b8"
NAME_SHOWN_MAX: Final = 36  # characters, in a legend
ROW_SHOWN_MAX: Final = 130  # characters of all names in a one-row legend; a longer legend is a column
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
LINE_SAMPLE: Final = 6  # width of the line sample beside each name, in characters

assert len(COLOURS) == TOPICS_DRAWN_MAX


def colour_of(place: int) -> str:
    """The colour of the line with this index; an index after the separately drawn topics is the line for all others."""
    return COLOURS[place] if place < len(COLOURS) else COLOUR_OF_OTHERS


def translucent(colour: str) -> str:
    """The same colour, transparent, to fill an area without hiding others."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.13)"


def display_name(name: str) -> str:
    """A name for a legend or an axis: escaped, and shortened in the middle if it is long."""
    if len(name) > NAME_SHOWN_MAX:
        half = NAME_SHOWN_MAX // 2
        name = f"{name[:half]}…{name[-half:]}"
    return escaped(name)


def escaped(text: str) -> str:
    """Escape text for plotly. Plotly does not decode quotation marks, so they are not escaped."""
    return escape(text, quote=False)


def time_text(ms: int) -> str:
    """A time in UTC in plotly's format, to the second or to the millisecond."""
    moment = datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")


def is_row(names: Sequence[str]) -> bool:
    """Whether a legend with these names fits in one row."""
    return sum(len(display_name(name)) + LINE_SAMPLE for name in names) <= ROW_SHOWN_MAX


def legend(names: Sequence[str], top: float) -> dict[str, Any]:
    """A legend with these names: a row above a plot whose top is at `top`, or a column to the right of the plot."""
    if is_row(names):
        return {"orientation": "h", "yanchor": "bottom", "y": top, "x": 0}
    return {"orientation": "v", "yanchor": "top", "y": top, "x": 1.01, "font": {"size": 11}, "tracegroupgap": 0}


def apply_layout(figure: "Figure", height: int, **more: Any) -> "Figure":
    """Apply the layout that all figures share, and return the figure."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 76, "r": 24, "t": 84, "b": 60},
        font={"family": FONT, "size": 13},
        hoverlabel={"font": {"family": FONT, "size": 13}, "namelength": -1},
        modebar={"bgcolor": "rgba(0,0,0,0)"},
        **more,
    )
    figure.update_xaxes(zeroline=False, automargin=True, title_standoff=10)
    figure.update_yaxes(zeroline=False, automargin=True, title_standoff=10)
    return figure


def hover_template(lines: Sequence[str]) -> str:
    """A hover template: these lines of text, and beside them the full name of the trace."""
    return "<br>".join(lines) + "<extra>%{meta}</extra>"
