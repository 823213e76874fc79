"""A listener with TLS beside one without: librdkafka writes and reads the same messages, in turns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks import rdkafka
from benchmarks.cases import Start
from benchmarks.load import Measured
from benchmarks.ours import as_server
from benchmarks.outcomes import Outcome
from tailrace.model.limits import KiB
from tailrace.testing import Broker
from tests.certificates import Authority

ROUNDS: Final = 5
MESSAGES: Final = 300_000
KINDS: Final[tuple[rdkafka.Kind, ...]] = ("produce", "consume")


def tls(_: Start, folder: Path) -> Iterator[Outcome]:
    authority = Authority(folder)
    secured: dict[str, Any] = {
        "listener_security_protocol_map": "kafka:SSL",
        "ssl_keystore_location": authority.keystore(),
    }
    with (
        Broker(data_dir=folder / "plain", fsync="never") as plain,
        Broker(data_dir=folder / "tls", fsync="never", **secured) as encrypted,
    ):
        found: dict[tuple[rdkafka.Kind, bool], list[Measured]] = {
            (kind, secure): [] for kind in KINDS for secure in (False, True)
        }
        for number in range(ROUNDS):
            for secure in (False, True) if number % 2 else (True, False):
                server = as_server(encrypted if secure else plain)
                for kind in KINDS:
                    options = {"value_bytes": KiB, "truststore": authority.truststore if secure else ""}
                    one = rdkafka.measured(server, kind, f"t{number}", MESSAGES, pids=[server.pid], **options)
                    found[kind, secure].append(one)
    for kind in KINDS:
        yield outcome(
            f"{kind} 1 KB messages with TLS beside none",
            "MB/s",
            [[one.megabytes_per_second for one in found[kind, secure]] for secure in (True, False)],
        )
        yield outcome(
            f"{kind} 1 KB messages with TLS beside none, broker's CPU",
            "s/GB",
            [[one.cpu_seconds_per_gigabyte for one in found[kind, secure]] for secure in (True, False)],
        )


def outcome(name: str, unit: str, rounds: list[list[float]]) -> Outcome:
    return Outcome(
        name=name,
        fsync="never",
        acks="1",
        unit=unit,
        rounds=tuple(rounds[0]),
        beside="one",
        beside_rounds=tuple(rounds[1]),
    )
