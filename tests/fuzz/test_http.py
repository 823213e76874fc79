"""A sample of the fuzz of the HTTP door: the same kinds of requests, fewer of them, from one seed."""

import asyncio

from tests.fuzz.http import fuzz, serving

REQUESTS = 3000
CONNECTIONS = 6
SEED = 3


def test_bad_requests_cost_their_sender_alone() -> None:
    with serving() as broker:
        outcome = asyncio.run(fuzz(broker, SEED, REQUESTS, CONNECTIONS))
    assert outcome.findings == []
    assert outcome.requests >= REQUESTS
    assert outcome.broken > 20
    assert {204, 400, 403, 404, 405} <= set(outcome.statuses)
    assert outcome.rounds > 0
