"""The contests between Kafka and our broker as coordinators of groups and of transactions.

The same work as in `cases.groups` and `cases.transactions`, once per round, without thresholds. A coordinator responds
once its record is committed, whatever acks a producer uses.
"""

from statistics import median
from typing import Final

from benchmarks.cases import groups, transactions
from benchmarks.contests import Contest, Entrant, Figure

ACKS_ALL: Final = -1
WARM_UP_MEMBERS: Final = groups.MEMBER_COUNTS[:-1]


def commits(entrant: Entrant, _: str, scale: float) -> list[Figure]:
    count = groups.CONNECTIONS
    (rate,) = groups.measured(entrant.server, "commits", count, groups.SECONDS * scale, rounds=1)
    return [Figure(name=f"offset commits, {count} groups", unit="commits/s", value=rate, acks=ACKS_ALL)]


def rebalances(entrant: Entrant, _: str, scale: float) -> list[Figure]:
    found = []
    for kind in ("classic", "consumer"):
        for count in groups.MEMBER_COUNTS if scale == 1 else WARM_UP_MEMBERS:
            (took,) = groups.measured(entrant.server, kind, count, rounds=1)
            found.append(Figure(name=f"rebalance of {count} members, {kind}", unit="ms", value=took, acks=ACKS_ALL))
    return found


def transacting(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    found = []
    for messages in transactions.SIZES:
        for kind in transactions.PRODUCERS:
            rate = transactions.ran(entrant.server, kind, topic, messages, transactions.SECONDS * scale).per_second
            name = transactions.named(kind, messages)
            found.append(Figure(name=name, unit="transactions/s", value=rate, acks=ACKS_ALL))
    return found


def reading_committed(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    """Which isolation level is read first alternates, and each ratio is taken within one pair of reads."""
    end = transactions.filled(entrant.server, topic, int(transactions.TRANSACTIONS_READ * scale))
    looks = [transactions.both_ways(entrant.server, topic, end, number) for number in range(transactions.READ_ROUNDS)]
    speed = median(committed.megabytes_per_second for committed, _ in looks)
    cost = median(committed.seconds / everything.seconds for committed, everything in looks)
    return [
        Figure(name="catch-up fetch of committed records", unit="MB/s", value=speed, acks=ACKS_ALL),
        Figure(name="time to read committed records over that to read all", unit="x", value=cost, acks=ACKS_ALL),
    ]


CONTESTS: Final[dict[str, Contest]] = {
    "commits": commits,
    "rebalances": rebalances,
    "transactions": transacting,
    "read-committed": reading_committed,
}
