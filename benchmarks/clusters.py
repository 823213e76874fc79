"""Three of our brokers against three of Kafka's: throughput of acks=all with three replicas.

Kafka never waits for the disk, and responds once all in-sync replicas have a message in memory. Our brokers respond
once a majority has it, on disk with `always`. All three clusters stay up and take turns; half a round warms them up.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import kafka, ours
from benchmarks.brokers import Brokers
from benchmarks.cases.replicated import MESSAGES, through
from benchmarks.load import Measured
from benchmarks.outcomes import Outcome, Threshold, compared

NAME: Final = "3-brokers"
ROUNDS: Final = 3
PEER_LABEL: Final = "kafka"
ACKS_ALL: Final = -1
THRESHOLDS: Final = {
    "never": Threshold(of="ratio", at_least=1.3),
    "always": Threshold(of="ratio", at_least=1.0),  # with fsync in ours, without in Kafka
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    label: str
    brokers: Brokers


def enter(stack: ExitStack, folder: Path) -> list[Entrant]:
    """Start all clusters."""
    own = {label: folder / f"three-{label}" for label in (PEER_LABEL, *THRESHOLDS)}
    for path in own.values():
        path.mkdir()
    peer = Entrant(label=PEER_LABEL, brokers=stack.enter_context(kafka.cluster(own[PEER_LABEL])))
    never = Entrant(label="never", brokers=stack.enter_context(ours.cluster(own["never"], "never")))
    always = Entrant(label="always", brokers=stack.enter_context(ours.cluster(own["always"], "always")))
    return [peer, never, always]


def compete(folder: Path, tell: Callable[[str], None]) -> list[Outcome]:
    found: dict[str, list[Measured]] = {}
    with ExitStack() as stack:
        tell("three brokers each: starting")
        entrants = enter(stack, folder)
        for number in range(ROUNDS + 1):  # round 0 warms up
            for position in range(len(entrants)):
                entrant = entrants[(position + number) % len(entrants)]
                tell(f"three brokers, round {number} of {ROUNDS}: {entrant.label}")
                count = MESSAGES if number else MESSAGES // 2
                measured = through(entrant.brokers, f"through-{number}", ACKS_ALL, count)
                if number:
                    found.setdefault(entrant.label, []).append(measured)
    return [outcome for label in THRESHOLDS for outcome in judge(label, found[label], found[PEER_LABEL])]


def judge(label: str, measured: list[Measured], peer: list[Measured]) -> list[Outcome]:
    figures: dict[tuple[str, str], Callable[[Measured], float]] = {
        ("", "MB/s"): lambda one: one.megabytes_per_second,
        (", all brokers' CPU", "s/GB"): lambda one: one.cpu_seconds_per_gigabyte,
    }
    return [
        compared(
            figure,
            measured,
            peer,
            name=f"3 brokers, 3 replicas: produce 1 KB messages{what}",
            unit=unit,
            fsync=label,
            acks="all",
            beside="peer",
            threshold=None if what else THRESHOLDS[label],
        )
        for (what, unit), figure in figures.items()
    ]
