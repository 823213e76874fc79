"""The REST API by curl: queues, whose messages are taken and settled one by one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.client.blocking_queue import BlockingQueue
from tailrace.model.addresses import Address
from tailrace.testing import Broker
from tests.interop.rest_door import CURL, Answered, RestDoor, fits, new_name

pytestmark = [pytest.mark.foreign, pytest.mark.skipif(CURL is None, reason="curl is not installed")]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as one:
        yield one


@pytest.fixture(scope="module")
def door(broker: Broker) -> Iterator[RestDoor]:
    with RestDoor(broker.bootstrap, broker=1) as one:
        yield one


def queue_with(door: RestDoor, *messages: Any, **options: Any) -> str:
    name = new_name()
    created = door.send("PUT", f"/v1/queues/{name}", options)
    assert created.status == 201
    fits(created, "createQueue")
    if messages:
        body = {"records": [{"value": one} for one in messages]}
        fits(door.post(f"/v1/queues/{name}/messages", body), "sendMessages")
    return name


def take(door: RestDoor, queue: str, limit: int = 1, wait_ms: int = 0) -> list[dict[str, Any]]:
    answered = door.post(f"/v1/queues/{queue}/take", {"limit": limit, "wait_ms": wait_ms})
    found: list[dict[str, Any]] = fits(answered, "takeMessages")["messages"]
    return found


def settle(door: RestDoor, queue: str, message: dict[str, Any], verb: str, *, follow: bool = False) -> Answered:
    return door.post(f"/v1/queues/{queue}/locks/{message['lock']}/{verb}", follow=follow)


def test_messages_are_taken_and_settled(door: RestDoor) -> None:
    letters = f"{new_name()}-dead"
    queue = queue_with(door, "a", "b", "c", dead_letters=letters)
    first, second, third = take(door, queue, limit=10)
    assert [one["value"] for one in (first, second, third)] == ["a", "b", "c"]
    assert 0 < first["lock_ms"] <= 30_000
    assert take(door, queue) == []
    assert settle(door, queue, first, "accept").status == 204
    assert settle(door, queue, second, "release").status == 204
    assert settle(door, queue, third, "reject").status == 204
    (again,) = take(door, queue, limit=10, wait_ms=5000)
    assert (again["value"], again["delivery"]) == ("b", 2)
    dead = fits(door.get(f"/v1/queues/{queue}/dead-letters"), "readDeadLetters")
    assert [one["value"] for one in dead["records"]] == ["c"]
    found = fits(door.get(f"/v1/queues/{queue}"), "describeQueue")
    assert (found["waiting"], found["dead_letters"]) == (1, {"topic": letters, "messages": 1})
    assert queue in fits(door.get("/v1/queues"), "listQueues")["queues"]
    peeked = fits(door.get(f"/v1/queues/{queue}/messages"), "peekMessages")
    assert peeked["records"][0]["value"] == "b"


def test_a_decision_may_be_repeated_and_not_changed(door: RestDoor) -> None:
    queue = queue_with(door, "a")
    (message,) = take(door, queue)
    assert settle(door, queue, message, "accept").status == 204
    assert settle(door, queue, message, "accept").status == 204
    other = settle(door, queue, message, "release")
    assert (other.status, other.problem) == (410, "lock-ended")
    foreign = settle(door, queue_with(door), message, "accept")
    assert (foreign.status, foreign.problem) == (410, "lock-ended")


def test_a_lock_that_nobody_settles_ends(door: RestDoor) -> None:
    queue = queue_with(door, "a", lock_ms=1000)
    (message,) = take(door, queue)
    (again,) = take(door, queue, wait_ms=20_000)
    assert (again["offset"], again["delivery"]) == (0, 2)
    late = settle(door, queue, message, "accept")
    assert (late.status, late.problem) == (410, "lock-ended")
    assert settle(door, queue, again, "accept").status == 204


def test_another_door_sends_to_the_one_with_the_lock(door: RestDoor, broker: Broker) -> None:
    queue = queue_with(door, "a", "b")
    first, second = take(door, queue, limit=2)
    with RestDoor(broker.bootstrap, broker=2) as other:
        other.others[1] = Address("127.0.0.1", door.port)
        redirected = settle(other, queue, first, "accept")
        assert redirected.status == 307
        assert redirected.headers["location"].startswith(f"//127.0.0.1:{door.port}/v1/queues/{queue}/locks/")
        assert settle(other, queue, first, "accept", follow=True).status == 204
        other.others.clear()
        gone = settle(other, queue, second, "accept")
        assert (gone.status, gone.problem) == (410, "lock-ended")


def test_doors_and_workers_share_a_queue(door: RestDoor, broker: Broker) -> None:
    queue = queue_with(door, "a", "b", partitions=1)
    (message,) = take(door, queue)
    with BlockingQueue(broker.bootstrap, queue) as worker, worker.take(timeout_s=30) as other:
        assert {message["value"], (other.value or b"").decode()} == {"a", "b"}
    assert settle(door, queue, message, "accept").status == 204
    assert take(door, queue) == []


def test_what_is_no_queue(door: RestDoor) -> None:
    missing = door.get("/v1/queues/nothing")
    assert (missing.status, missing.problem) == (404, "no-such-queue")
    untaken = door.post("/v1/queues/nothing/take", {})
    assert (untaken.status, untaken.problem) == (404, "no-such-queue")
    odd = door.post("/v1/queues/nothing/locks/abc/accept")
    assert (odd.status, odd.problem) == (400, "invalid-request")
    unknown = door.post(f"/v1/queues/nothing/locks/1-0-0-1-{'0' * 32}/accept")
    assert (unknown.status, unknown.problem) == (410, "lock-ended")
    none = door.get(f"/v1/queues/{queue_with(door)}/dead-letters")
    assert (none.status, none.problem) == (404, "no-such-queue")


def test_a_queue_is_made_once_and_deleted(door: RestDoor) -> None:
    queue = queue_with(door, delivery_limit=7)
    again = door.send("PUT", f"/v1/queues/{queue}", {"lock_ms": 5000})
    assert again.status == 200
    settings = fits(again, "createQueue")["settings"]
    assert settings["share.delivery.count.limit"] == "7"
    assert settings["share.record.lock.duration.ms"] == "5000"
    changed = door.send("PATCH", f"/v1/queues/{queue}", {"settings": {"share.delivery.count.limit": None}})
    assert "share.delivery.count.limit" not in fits(changed, "changeQueue")["settings"]
    assert door.send("DELETE", f"/v1/queues/{queue}").status == 204
    assert door.get(f"/v1/queues/{queue}").status == 404
