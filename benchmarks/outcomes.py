"""The outcome of a case: its figures, those it is compared with, and whether a threshold is met."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, TypeVar

T = TypeVar("T")
Line = dict[str, Any]  # an outcome as JSON

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A bound on the value itself, or on its ratio to the floor or the peer."""

    of: Literal["value", "ratio"]
    at_least: float | None = None
    at_most: float | None = None
    asked: float | None = None  # `at_least` before it was lowered to a reachable value (ADR 0014)

    def met(self, figure: float) -> bool:
        low = self.at_least is None or figure >= self.at_least
        return low and (self.at_most is None or figure <= self.at_most)

    def __str__(self) -> str:
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        lowered = "" if self.asked is None else f" (of {self.asked:,g} asked)"
        return f"{sign} {bound:,g}{' x' if self.of == 'ratio' else ''}{lowered}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One line of the results. The value is the median of its rounds."""

    name: str
    fsync: str  # of our broker
    acks: str
    unit: str
    rounds: tuple[float, ...]
    beside: Literal["floor", "one", "peer"] | None = None  # one: another measurement of ours, named by the case
    beside_rounds: tuple[float, ...] = ()
    threshold: Threshold | None = None  # None: reported only

    @property
    def value(self) -> float:
        return median(self.rounds)

    @property
    def other(self) -> float | None:
        return median(self.beside_rounds) if self.beside_rounds else None

    @property
    def ratio(self) -> float | None:
        """Compared with a peer, the ratio of the medians; otherwise the median over rounds of the ratio within each."""
        if not self.other:
            return None
        if self.beside == "peer":
            return self.value / self.other
        return median(one / other for one, other in zip(self.rounds, self.beside_rounds, strict=True))

    @property
    def ok(self) -> bool | None:
        if self.threshold is None:
            return None
        figure = self.value if self.threshold.of == "value" else self.ratio
        return figure is not None and self.threshold.met(figure)

    def as_json(self) -> Line:
        line: Line = {"name": self.name, "fsync": self.fsync, "acks": self.acks}
        line |= {"value": brief(self.value), "unit": self.unit, "rounds": [brief(one) for one in self.rounds]}
        if self.beside is not None and self.other is not None and self.ratio is not None:
            line |= {self.beside: brief(self.other), f"{self.beside}_rounds": list(map(brief, self.beside_rounds))}
            line |= {"ratio": brief(self.ratio)}
        return line | {"threshold": str(self.threshold) if self.threshold else None, "ok": self.ok}


def compared(figure: Callable[[T], float], own: Iterable[T], other: Iterable[T], **described: Any) -> Outcome:
    """One figure of our rounds, beside the same figure of the rounds they are compared with."""
    return Outcome(rounds=tuple(map(figure, own)), beside_rounds=tuple(map(figure, other)), **described)


def brief(figure: float) -> float:
    """Rounded to four significant digits: more would be noise."""
    return float(f"{figure:.4g}")


def acks_name(acks: int) -> str:
    return "all" if acks == -1 else str(acks)


def write(outcomes: Iterable[Outcome], file_name: str, *, keeps_others: bool) -> list[Line]:
    """Write one JSON object per line, with its date; all lines of the file. `keeps_others`: replace only the lines with
    the same names, which a run of some cases does."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / file_name
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    new = [outcome.as_json() | {"measured": today} for outcome in outcomes]
    old = [json.loads(line) for line in file.read_text().splitlines()] if keeps_others and file.exists() else []
    lines = list(({_key(line): line for line in old} | {_key(line): line for line in new}).values())
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return lines


def _key(line: Line) -> tuple[str, ...]:
    return line["name"], line["fsync"], line["acks"], line["unit"]


def missed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.ok is False]
