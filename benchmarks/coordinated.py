"""What Kafka and our broker are measured at as coordinators: of groups, and of transactions.

The same work as in `cases.groups` and `cases.transactions`, once a round. Nothing here has a threshold. A coordinator
answers when what it says is committed, whatever acks a producer asks for.
"""

from statistics import median
from typing import Final

from benchmarks.cases import groups, transactions
from benchmarks.contests import Contest, Entrant, Figure

acks_all: Final = -1
warm_up_members: Final = groups.member_counts[:-1]


def commits(entrant: Entrant, _: str, scale: float) -> list[Figure]:
    count = groups.connections
    (rate,) = groups.measured(entrant.server, "commits", count, groups.seconds * scale, rounds=1)
    return [Figure(name=f"offset commits, {count} groups", unit="commits/s", value=rate, acks=acks_all)]


def rebalances(entrant: Entrant, _: str, scale: float) -> list[Figure]:
    found = []
    for kind in ("classic", "consumer"):
        for count in groups.member_counts if scale == 1 else warm_up_members:
            (took,) = groups.measured(entrant.server, kind, count, rounds=1)
            found.append(Figure(name=f"rebalance of {count} members, {kind}", unit="ms", value=took, acks=acks_all))
    return found


def transacting(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    found = []
    for messages in transactions.sizes:
        for kind in transactions.producers:
            rate = transactions.ran(entrant.server, kind, topic, messages, transactions.seconds * scale).per_second
            name = transactions.named(kind, messages)
            found.append(Figure(name=name, unit="transactions/s", value=rate, acks=acks_all))
    return found


def reading_committed(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    """Who reads first changes with every look, and within each look one is beside the other."""
    end = transactions.filled(entrant.server, topic, int(transactions.transactions_read * scale))
    looks = [transactions.both_ways(entrant.server, topic, end, number) for number in range(transactions.read_rounds)]
    speed = median(committed.megabytes_per_second for committed, _ in looks)
    cost = median(committed.seconds / everything.seconds for committed, everything in looks)
    return [
        Figure(name="catch-up fetch of committed records", unit="MB/s", value=speed, acks=acks_all),
        Figure(name="time to read committed records over that to read all", unit="x", value=cost, acks=acks_all),
    ]


contests: Final[dict[str, Contest]] = {
    "commits": commits,
    "rebalances": rebalances,
    "transactions": transacting,
    "read-committed": reading_committed,
}
