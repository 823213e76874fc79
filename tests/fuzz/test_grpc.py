"""A sample of the fuzz of the gRPC door: the same kinds of requests, fewer of them, from one seed."""

from tests.fuzz.grpc import fuzz, serving

REQUESTS = 1000
SEED = 3


def test_bad_requests_cost_their_sender_alone() -> None:
    with serving() as broker:
        outcome = fuzz(broker, SEED, REQUESTS)
    assert outcome.findings == []
    assert outcome.requests >= REQUESTS
    assert outcome.broken > 20
    assert outcome.streams > 5
    assert {"OK", "INVALID_ARGUMENT"} <= set(outcome.statuses)
    assert outcome.rounds > 0
