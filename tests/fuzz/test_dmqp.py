"""A sample of the fuzz of the DMQP door: the same kinds of requests, fewer of them, from one seed."""

import asyncio

from tests.fuzz.dmqp import fuzz, serving

REQUESTS = 2500
CONNECTIONS = 6
SEED = 3


def test_bad_requests_cost_their_sender_alone() -> None:
    with serving() as (broker, port):
        outcome = asyncio.run(fuzz(broker, port, SEED, REQUESTS, CONNECTIONS))
    assert outcome.findings == []
    assert outcome.requests >= REQUESTS
    assert outcome.broken > 20
    assert {"OK", "ENOSYS", "EPROTO", "EMSGSIZE"} <= set(outcome.statuses)
    assert outcome.rounds > 0
