"""The figures of how messages are distributed: over sizes, and over the partitions of their topic."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final

from tailrace.model.frozen import frozen
from tailrace.pipeline.analysis.figure_style import (
    apply_layout,
    colour_of,
    display_name,
    escaped,
    hover_template,
    legend,
)
from tailrace.pipeline.analysis.report import PARTITIONS_DRAWN_MAX, TOPICS_DRAWN_MAX, PartitionShare, Report

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

SIZES_PX: Final = 440
ROW_PX: Final = 44  # height of one topic's row in the partition figure
AROUND_PX: Final = 150
UNITS: Final = ("B", "KiB", "MiB", "GiB")
BITS_A_UNIT: Final = 10
LABELS_IN_TWO_LINES_MAX: Final = 18  # more labels are written slanted
NAMED_MIN: Final = 2.0  # percent of the row that a piece needs for its name to fit
# Colours of 0, 1, and 2 or more times an even share (positions 0.0, 0.5 and 1.0 on the scale).
SHARE_COLOURS: Final = ((0.0, "#60a5fa"), (0.5, "#a3b1c2"), (1.0, "#ef4444"))
SHARE_COLOURED_MAX: Final = 2.0


@frozen
class Piece:
    """A piece of a topic's row: one partition, or all partitions that are not drawn separately."""

    name: str
    messages: int
    partitions: int = 1


def sizes(report: Report) -> "Figure":
    """A bar chart of value sizes: the share of each topic's messages per size."""
    from plotly.graph_objects import Bar, Figure

    every = [bits for line in report.sizes for bits, _ in line.counts]
    between = range(min(every), max(every) + 1) if every else range(0)
    gap = "<br>" if len(between) <= LABELS_IN_TWO_LINES_MAX else " "
    labels = [size_name(bits).replace(" ", gap) for bits in between]
    figure = Figure()
    for place, line in enumerate(report.sizes):
        counts, total = dict(line.counts), sum(count for _, count in line.counts)
        figure.add_trace(
            Bar(
                x=labels, y=[100 * counts.get(bits, 0) / total for bits in between],
                customdata=[[size_name(bits), counts.get(bits, 0)] for bits in between],
                name=display_name(line.name), meta=escaped(line.name), marker={"color": colour_of(place)},
                hovertemplate=hover_template(["%{customdata[0]}: %{y:.3~g} %", "%{customdata[1]:,} messages"]),
            )
        )  # fmt: skip
    apply_layout(
        figure, SIZES_PX, bargap=0.15, showlegend=True, legend=legend([line.name for line in report.sizes], 1.0)
    )
    figure.update_xaxes(title_text="size of a message's value (bytes)", type="category")
    figure.update_yaxes(title_text="share of the topic's messages (%)", rangemode="tozero")
    return figure


def size_name(bits: int) -> str:
    """The range of sizes with this number of bits: `64-127 B` for seven bits."""
    if bits <= 1:
        return f"{bits} B"
    number = min((bits - 1) // BITS_A_UNIT, len(UNITS) - 1)
    low = 1 << (bits - 1 - number * BITS_A_UNIT)
    return f"{low}-{2 * low - 1} B" if number == 0 else f"{low}-{2 * low} {UNITS[number]}"


def shares(report: Report) -> "Figure":
    """A row for each topic, divided into its partitions: the length of a piece is its share of the topic's messages,
    and its colour compares that with an even share."""
    from plotly.graph_objects import Figure

    drawn = [one.topic for one in report.totals[:TOPICS_DRAWN_MAX]]
    by_topic = {topic: list(those) for topic, those in groupby(report.partitions, lambda one: one.topic)}
    figure = Figure([_row(place, topic, by_topic[topic]) for place, topic in enumerate(drawn)])
    apply_layout(figure, AROUND_PX + ROW_PX * len(drawn), barmode="overlay", bargap=0.25, showlegend=False)
    figure.update_layout(coloraxis=_share_colours())
    figure.update_xaxes(title_text="share of the topic's messages (%)", range=[0, 100])
    labels = [_label(topic, by_topic[topic]) for topic in drawn]  # not y values: shortened names may be equal
    figure.update_yaxes(
        title_text="topic", tickvals=list(range(len(drawn))), ticktext=labels, autorange="reversed", showgrid=False
    )
    return figure


def _row(place: int, topic: str, partitions: Sequence[PartitionShare]) -> "Bar":
    from plotly.graph_objects import Bar

    total, even = sum(one.messages for one in partitions) or 1, 100 / len(partitions)
    pieces = list(_pieces(partitions))
    lengths = [100 * piece.messages / total for piece in pieces]
    times_even = [length / even / piece.partitions for length, piece in zip(lengths, pieces, strict=True)]
    return Bar(
        y=[place] * len(pieces), x=lengths, base=[0, *accumulate(lengths[:-1])], orientation="h",
        name=display_name(topic), meta=escaped(topic),
        text=[piece.name if length >= NAMED_MIN else "" for piece, length in zip(pieces, lengths, strict=True)],
        textposition="inside", insidetextanchor="middle", textangle=0,
        customdata=[
            [piece.name, length, piece.messages, ratio]
            for piece, length, ratio in zip(pieces, lengths, times_even, strict=True)
        ],
        marker={"color": times_even, "coloraxis": "coloraxis", "line": {"width": 1.5, "color": "rgba(128,128,128,.6)"}},
        hovertemplate=hover_template(
            ["partition %{customdata[0]}: %{customdata[1]:.3~g} %", "%{customdata[2]:,} messages",
             "%{customdata[3]:.3~g} times an even share"]
        ),
    )  # fmt: skip


def _label(topic: str, partitions: Sequence[PartitionShare]) -> str:
    """The topic, and how many of its partitions are empty and thus not visible."""
    empty = sum(not one.messages for one in partitions)
    return (
        f"{display_name(topic)}<br><sup>{empty} of {len(partitions)} partitions empty</sup>"
        if empty
        else display_name(topic)
    )


def _pieces(partitions: Sequence[PartitionShare]) -> Iterator[Piece]:
    """The partitions in numerical order; if there are too many, the largest ones, and one piece for all others."""
    largest = sorted(partitions, key=lambda one: -one.messages)[:PARTITIONS_DRAWN_MAX]
    for one in sorted(largest, key=lambda one: one.partition):
        yield Piece(name=str(one.partition), messages=one.messages)
    if others := len(partitions) - len(largest):
        messages = sum(one.messages for one in partitions) - sum(one.messages for one in largest)
        yield Piece(name=f"{others} others", messages=messages, partitions=others)


def _share_colours() -> dict[str, object]:
    return {
        "colorscale": [[at, colour] for at, colour in SHARE_COLOURS],
        "cmin": 0,
        "cmax": SHARE_COLOURED_MAX,
        "colorbar": {
            "title": {"text": "times an even share", "side": "top"}, "orientation": "h", "thickness": 10, "len": 0.35,
            "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "ypad": 4, "tickvals": [0, 0.5, 1, 1.5, 2],
            "ticktext": ["0", "½", "1", "1½", "2 or more"],
        },
    }  # fmt: skip
