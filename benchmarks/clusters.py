"""Three brokers of ours beside three of Kafka's: what acks=all with three replicas lets through.

Kafka never waits for the disk, and answers once all replicas in sync have a message in memory; ours answers once a
majority has it, on disk with `always`. All three clusters stay up, and take turns; half a round warms everybody.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import kafka, ours
from benchmarks.brokers import Brokers
from benchmarks.cases.replicated import messages, through
from benchmarks.load import Measured
from benchmarks.outcomes import Outcome, Threshold

name: Final = "3-brokers"
rounds: Final = 3
peer_label: Final = "kafka"
acks_all: Final = -1
thresholds: Final = {
    "never": Threshold(of="ratio", at_least=1.3),
    "always": Threshold(of="ratio", at_least=1.0),  # with our fsync on, and Kafka's off
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    label: str
    brokers: Brokers


def enter(stack: ExitStack, folder: Path) -> list[Entrant]:
    """Start everybody."""
    own = {label: folder / f"three-{label}" for label in (peer_label, *thresholds)}
    for path in own.values():
        path.mkdir()
    peer = Entrant(label=peer_label, brokers=stack.enter_context(kafka.cluster(own[peer_label])))
    never = Entrant(label="never", brokers=stack.enter_context(ours.cluster(own["never"], "never")))
    always = Entrant(label="always", brokers=stack.enter_context(ours.cluster(own["always"], "always")))
    return [peer, never, always]


def compete(folder: Path, tell: Callable[[str], None]) -> list[Outcome]:
    found: dict[str, list[Measured]] = {}
    with ExitStack() as stack:
        tell("three brokers each: starting")
        entrants = enter(stack, folder)
        for number in range(rounds + 1):  # number 0 warms up
            for position in range(len(entrants)):
                entrant = entrants[(position + number) % len(entrants)]
                tell(f"three brokers, round {number} of {rounds}: {entrant.label}")
                count = messages if number else messages // 2
                measured = through(entrant.brokers, f"through-{number}", acks_all, count)
                if number:
                    found.setdefault(entrant.label, []).append(measured)
    return [outcome for label in thresholds for outcome in judge(label, found[label], found[peer_label])]


def judge(label: str, measured: list[Measured], peer: list[Measured]) -> list[Outcome]:
    figures: dict[tuple[str, str], Callable[[Measured], float]] = {
        ("", "MB/s"): lambda one: one.megabytes_per_second,
        (", all brokers' CPU", "s/GB"): lambda one: one.cpu_seconds_per_gigabyte,
    }
    return [
        Outcome(
            name=f"3 brokers, 3 replicas: produce 1 KB messages{what}",
            fsync=label,
            acks="all",
            unit=unit,
            rounds=tuple(map(figure, measured)),
            beside="peer",
            beside_rounds=tuple(map(figure, peer)),
            threshold=None if what else thresholds[label],
        )
        for (what, unit), figure in figures.items()
    ]
