"""The REST API of three brokers, of which one is killed: what was acknowledged is there, and locks end."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.testing import Cluster
from tests.interop.rest_door import CURL, Answered, Curl, Unreachable, fits

pytestmark = [
    pytest.mark.long,
    pytest.mark.foreign,
    pytest.mark.skipif(CURL is None, reason="curl is not installed"),
]
DEADLINE_S = 120.0
PASSING = (409, 429, 503)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, proxied=False, fsync="never", http_port=0) as one:
        yield one


def doors(cluster: Cluster) -> list[Curl]:
    return [Curl(f"http://{cluster.broker(number).endpoints['http']}") for number in (1, 2, 3)]


def until_answered(door: Curl, method: str, path: str, body: Any, *options: str) -> Answered:
    """Ask again, as clients do, while the answer says that it may succeed later."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            answered = door.send(method, path, body, *options, follow=True)
        except Unreachable:  # a redirect to a broker that has just died
            assert time.monotonic() < deadline
            continue
        if answered.status not in PASSING or time.monotonic() >= deadline:
            return answered
        assert answered.headers["retry-after"] == "1"


def test_a_repeated_request_is_written_once_though_a_broker_dies(cluster: Cluster) -> None:
    first, second, third = doors(cluster)
    fits(until_answered(first, "POST", "/v1/topics", {"name": "orders", "partitions": 3}), "createTopic")
    path, key = "/v1/topics/orders/records", ("-H", "Idempotency-Key: one")
    body = {"records": [{"value": f"v{number}", "partition": number % 3} for number in range(9)]}
    written = fits(until_answered(first, "POST", path, body, *key), "produce")
    cluster.kill(1)
    for door in (second, third):
        again = until_answered(door, "POST", path, body, *key)
        assert (again.status, again.headers["idempotency-replayed"], again.json) == (200, "true", written)
    more = until_answered(second, "POST", path, {"records": [{"value": "after"}]}, "-H", "Idempotency-Key: two")
    assert more.status == 200
    found = []
    for partition in range(3):
        records = until_answered(third, "GET", f"/v1/topics/orders/partitions/{partition}/records", None)
        found += [one["value"] for one in fits(records, "readRecords")["records"]]
    assert sorted(found) == sorted(["after", *(f"v{number}" for number in range(9))])


def test_locks_are_found_at_their_broker_and_end_with_it(cluster: Cluster) -> None:
    first, second, _ = doors(cluster)
    fits(until_answered(first, "PUT", "/v1/queues/mails", {"partitions": 3}), "createQueue")
    sent = {"records": [{"value": f"m{number}", "partition": number % 3} for number in range(6)]}
    fits(until_answered(second, "POST", "/v1/queues/mails/messages", sent), "sendMessages")
    taken: list[dict[str, Any]] = []
    while len(taken) < 6:
        answered = until_answered(first, "POST", "/v1/queues/mails/take", {"limit": 6, "wait_ms": 1000})
        taken += fits(answered, "takeMessages")["messages"]
    accepted, lost = taken[:3], taken[3:]
    for one in accepted:
        redirected = second.post(f"/v1/queues/mails/locks/{one['lock']}/accept")
        assert redirected.status == 307
        assert until_answered(second, "POST", f"/v1/queues/mails/locks/{one['lock']}/accept", None).status == 204
    cluster.kill(1)
    again: list[str] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(again) < 3 and time.monotonic() < deadline:
        answered = until_answered(second, "POST", "/v1/queues/mails/take", {"limit": 6, "wait_ms": 1000})
        for one in fits(answered, "takeMessages")["messages"]:
            again.append(one["value"])
            done = until_answered(second, "POST", f"/v1/queues/mails/locks/{one['lock']}/accept", None)
            assert done.status == 204
    assert sorted(again) == sorted(one["value"] for one in lost)
    gone = until_answered(second, "POST", f"/v1/queues/mails/locks/{lost[0]['lock']}/accept", None)
    assert (gone.status, gone.problem) == (410, "lock-ended")
