"""The REST API by curl: each operation against a real broker, its answers as documented, and what other clients see."""

import json
import subprocess
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.blocking_queue import BlockingQueue
from tailrace.client.cluster import Limits
from tailrace.doors.http.rest.operations import OPERATIONS
from tailrace.doors.http.rest.schema import Object
from tailrace.model.addresses import Address
from tailrace.model.limits import REST_BODY_MAX_BYTES, REST_PRODUCE_MAX_BYTES
from tailrace.testing import Broker
from tests.interop.rest_door import CURL, Answered, RestDoor

pytestmark = [pytest.mark.foreign, pytest.mark.skipif(CURL is None, reason="curl is not installed")]

names = (f"t{number}" for number in count())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as one:
        yield one


@pytest.fixture(scope="module")
def door(broker: Broker) -> Iterator[RestDoor]:
    with RestDoor(broker.bootstrap, broker=1) as one:
        yield one


def made(door: RestDoor, partitions: int = 1) -> str:
    """A new topic."""
    name = next(names)
    assert door.post("/v1/topics", {"name": name, "partitions": partitions}).status == 201
    return name


def fits(answered: Answered, id: str) -> Any:
    """The body of an answer, which must be as documented."""
    operation = next(one for one in OPERATIONS if one.id == id)
    assert answered.status in operation.answers, answered
    shape = operation.answers[answered.status].shape
    if shape is None:
        assert answered.body == b""
        return None
    return shape.check(answered.json, "")


def write(door: RestDoor, topic: str, *values: Any, **fields: Any) -> list[dict[str, int]]:
    answered = door.post(f"/v1/topics/{topic}/records", {"records": [{"value": one, **fields} for one in values]})
    written: list[dict[str, int]] = fits(answered, "produce")["written"]
    return written


def values(door: RestDoor, topic: str, partition: int = 0) -> list[Any]:
    answered = door.get(f"/v1/topics/{topic}/partitions/{partition}/records")
    return [one["value"] for one in fits(answered, "readRecords")["records"]]


# Topics


def test_a_topic_is_created_changed_and_deleted(door: RestDoor) -> None:
    name = next(names)
    body = {"name": name, "partitions": 2, "settings": {"retention.ms": "3600000"}}
    created = door.post("/v1/topics", body)
    assert created.status == 201
    assert created.headers["location"] == f"/v1/topics/{name}"
    found = fits(created, "createTopic")
    assert [one["partition"] for one in found["partitions"]] == [0, 1]
    assert found["settings"] == {"retention.ms": "3600000"}
    again = door.post("/v1/topics", body)
    assert (again.status, again.problem) == (409, "already-exists")

    changed = door.send("PATCH", f"/v1/topics/{name}", {"partitions": 3})
    assert len(fits(changed, "changeTopic")["partitions"]) == 3
    assert fits(door.get(f"/v1/topics/{name}"), "describeTopic")["settings"] == {"retention.ms": "3600000"}
    assert fits(door.get(f"/v1/topics/{name}/settings"), "readTopicSettings")["settings"]
    settings = door.send("PATCH", f"/v1/topics/{name}/settings", {"settings": {"retention.ms": None}})
    values = {one["name"]: one for one in fits(settings, "changeTopicSettings")["settings"]}
    assert values["retention.ms"]["source"] != "topic"
    wrong = door.send("PATCH", f"/v1/topics/{name}/settings", {"settings": {"retention.ms": "soon"}})
    assert (wrong.status, wrong.problem, wrong.json["code"]) == (400, "invalid-request", "INVALID_CONFIG")

    assert door.send("DELETE", f"/v1/topics/{name}").status == 204
    gone = door.get(f"/v1/topics/{name}")
    assert (gone.status, gone.problem) == (404, "no-such-topic")


def test_topics_are_listed_in_pages(door: RestDoor) -> None:
    for number in range(3):
        assert door.post("/v1/topics", {"name": f"paged-{number}"}).status == 201
    first = fits(door.get("/v1/topics?prefix=paged-&limit=2"), "listTopics")
    assert [one["name"] for one in first["topics"]] == ["paged-0", "paged-1"]
    last = fits(door.get(f"/v1/topics?prefix=paged-&limit=2&after={first['next']}"), "listTopics")
    assert [one["name"] for one in last["topics"]] == ["paged-2"]
    assert last["next"] is None


# Records


def test_what_is_written_is_read(door: RestDoor) -> None:
    topic = made(door, partitions=2)
    body = {
        "records": [
            {"key": "table 4", "value": "two coffees", "partition": 0, "timestamp": 1000},
            {"value": {"base64": "AP8="}, "partition": 0, "headers": [{"name": "a", "value": "b"}, {"name": "a"}]},
            {"value": {"json": {"cups": 2}}, "partition": 1},
            {"key": {"base64": "/w=="}, "partition": 0},
        ]
    }
    written = fits(door.post(f"/v1/topics/{topic}/records", body), "produce")["written"]
    places = [(one["partition"], one["offset"]) for one in written]
    assert places == [(0, 0), (0, 1), (1, 0), (0, 2)]
    read = fits(door.get(f"/v1/topics/{topic}/partitions/0/records"), "readRecords")
    assert read["next_offset"] == 3
    first, second, third = read["records"]
    assert first == {
        "partition": 0, "offset": 0, "timestamp": 1000, "key": "table 4", "value": "two coffees", "headers": [],
    }  # fmt: skip
    assert second["value"] == {"base64": "AP8="}
    assert second["headers"] == [{"name": "a", "value": "b"}, {"name": "a", "value": None}]
    assert (third["key"], third["value"]) == ({"base64": "/w=="}, None)
    as_json = door.get(f"/v1/topics/{topic}/partitions/1/records?form=json").json
    assert as_json["records"][0]["value"] == {"json": {"cups": 2}}


def test_a_body_is_a_value_byte_for_byte(door: RestDoor) -> None:
    topic, data = made(door), bytes(range(256)) * 4096  # 1 MiB
    path = f"/v1/topics/{topic}/records"
    assert door.send("PATCH", f"/v1/topics/{topic}/settings", {"settings": {"max.message.bytes": "2000000"}}).status
    done = door.curl(f"{path}?key=k%C3%A4", "-H", "content-type: application/octet-stream", data=data)
    assert fits(done, "produce")["written"] == [{"partition": 0, "offset": 0}]
    assert door.curl(path, "-H", "content-type: text/plain", data=b"two coffees").status == 200
    assert door.get(f"/v1/topics/{topic}/partitions/0/records/0/value").body == data
    one = fits(door.get(f"/v1/topics/{topic}/partitions/0/records/0?form=base64"), "readRecord")
    assert one["key"] == {"base64": "a8Ok"}
    assert fits(door.get(f"/v1/topics/{topic}/partitions/0/records/1"), "readRecord")["value"] == "two coffees"


def test_a_tombstone_has_no_value(door: RestDoor) -> None:
    topic = made(door)
    write(door, topic, None, key="gone")
    assert door.get(f"/v1/topics/{topic}/partitions/0/records/0/value").status == 204


def test_a_read_waits_for_records(door: RestDoor) -> None:
    topic = made(door)
    timer = threading.Timer(0.5, write, (door, topic, "late"))
    timer.start()
    read = door.get(f"/v1/topics/{topic}/partitions/0/records?offset=0&wait_ms=30000").json
    timer.join()
    assert [one["value"] for one in read["records"]] == ["late"]


def test_places_to_read_from(door: RestDoor) -> None:
    topic = made(door)
    for number in range(3):
        write(door, topic, f"v{number}", timestamp=1000 * (number + 1))
    path = f"/v1/topics/{topic}/partitions/0/records"
    assert [one["value"] for one in door.get(f"{path}?offset=1&limit=1").json["records"]] == ["v1"]
    assert door.get(f"{path}?offset=latest").json == {"records": [], "next_offset": 3}
    assert [one["value"] for one in door.get(f"{path}?timestamp=2500").json["records"]] == ["v2"]
    assert door.get(f"{path}?timestamp=9999").json["next_offset"] == 3
    beyond = door.get(f"{path}?offset=4")
    assert (beyond.status, beyond.problem) == (416, "offset-out-of-range")
    assert (beyond.json["earliest"], beyond.json["latest"]) == (0, 3)
    missing = door.get(f"{path}/3")
    assert (missing.status, missing.problem) == (404, "no-such-record")
    offsets = fits(door.get(f"/v1/topics/{topic}/offsets?timestamp=1500"), "readTopicOffsets")["offsets"]
    assert offsets == [{"partition": 0, "earliest": 0, "latest": 3, "at": 1}]


def test_what_is_too_large_is_refused(door: RestDoor) -> None:
    topic = made(door)
    path = f"/v1/topics/{topic}/records"
    large = door.curl(path, "-H", "content-type: text/plain", data=b"x" * (REST_PRODUCE_MAX_BYTES - 1))
    assert (large.status, large.problem) == (413, "too-large"), large.json
    larger = door.curl(path, "-H", "content-type: text/plain", data=b"x" * (REST_PRODUCE_MAX_BYTES + 1))
    assert (larger.status, larger.problem) == (413, "too-large")
    settings = door.curl("/v1/topics", data=b" " * (REST_BODY_MAX_BYTES + 1))
    assert (settings.status, settings.problem) == (413, "too-large")


def test_records_that_cannot_all_be_written_say_which_were(door: RestDoor) -> None:
    topic = made(door)
    body = {"records": [{"value": "a"}, {"value": "b", "partition": 9}]}
    partly = door.post(f"/v1/topics/{topic}/records", body)
    assert (partly.status, partly.problem) == (404, "no-such-topic")
    assert partly.json["written"] == [{"partition": 0, "offset": 0}, None]


# Idempotency keys


def test_a_request_with_a_key_is_written_once(door: RestDoor, broker: Broker) -> None:
    topic = made(door, partitions=2)
    body = {"records": [{"value": "a", "key": "1"}, {"value": "b", "key": "2"}, {"value": "c", "partition": 1}]}
    key = ("-H", f"Idempotency-Key: {topic}")
    first = door.post(f"/v1/topics/{topic}/records", body, *key)
    assert (first.status, first.headers["idempotency-replayed"]) == (200, "false")
    with RestDoor(broker.bootstrap) as other:  # another broker's door knows as much
        again = other.post(f"/v1/topics/{topic}/records", body, *key)
    assert (again.status, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json == first.json
    assert len(values(door, topic, 0)) + len(values(door, topic, 1)) == 3
    reused = door.post(f"/v1/topics/{topic}/records", {"records": [{"value": "d"}]}, *key)
    assert (reused.status, reused.problem) == (422, "idempotency-key-reused")
    other_topic = made(door)
    assert door.post(f"/v1/topics/{other_topic}/records", {"records": [{"value": "d"}]}, *key).status == 200


def test_the_same_key_at_the_same_time_writes_once(door: RestDoor, broker: Broker) -> None:
    topic = made(door)
    answers: list[Answered] = []

    def send(door: RestDoor) -> None:
        key = ("-H", f"idempotency-key: {topic}")
        for _ in range(50):
            answers.append(door.post(f"/v1/topics/{topic}/records", {"records": [{"value": "a"}]}, *key))
            if answers[-1].status == 200:
                return
            assert answers[-1].status in (409, 503), answers[-1]

    with RestDoor(broker.bootstrap) as other:
        senders = [threading.Thread(target=send, args=(one,)) for one in (door, other, door, other)]
        for one in senders:
            one.start()
        for one in senders:
            one.join()
    done = [one.json for one in answers if one.status == 200]
    assert len(done) == 4
    assert all(one == done[0] for one in done)
    assert values(door, topic) == ["a"]


def test_a_group_of_an_idempotency_key_is_not_listed(door: RestDoor) -> None:
    topic = made(door)
    door.post(f"/v1/topics/{topic}/records", {"records": [{"value": "a"}]}, "-H", f"idempotency-key: {topic}")
    assert not [one for one in door.get("/v1/groups").json["groups"] if "once" in one["name"]]
    assert [one for one in door.get("/v1/groups?internal=true").json["groups"] if "once" in one["name"]]


# Groups


def test_a_group_reads_and_commits(door: RestDoor) -> None:
    topic, group = made(door), next(names)
    write(door, topic, "a", "b", "c")
    path = f"/v1/groups/{group}/topics/{topic}/records"
    read = fits(door.get(f"{path}?limit=2"), "readByGroup")
    assert [one["value"] for one in read["records"]] == ["a", "b"]
    assert door.get(f"{path}?limit=2").json == read  # nothing was committed
    committed = door.post(f"/v1/groups/{group}/offsets", {"offsets": read["offsets"]})
    assert fits(committed, "commitOffsets")["offsets"] == [
        {"topic": topic, "partition": 0, "committed": 2, "latest": 3, "lag": 1}
    ]
    assert [one["value"] for one in door.get(path).json["records"]] == ["c"]
    described = fits(door.get(f"/v1/groups/{group}"), "describeGroup")
    assert (described["state"], described["offsets"][0]["lag"]) == ("Empty", 1)

    path = f"/v1/groups/{group}/offsets/reset"
    dry = door.post(path, {"topic": topic, "to": "earliest", "dry_run": True})
    assert fits(dry, "resetOffsets")["offsets"][0]["committed"] == 0
    assert door.get(f"/v1/groups/{group}/offsets?topic={topic}").json["offsets"][0]["committed"] == 2
    assert fits(door.get(f"/v1/groups/{group}/offsets"), "readGroupOffsets")["offsets"][0]["lag"] == 1
    listed = fits(door.get(f"/v1/groups?prefix={group}"), "listGroups")["groups"]
    assert {"name": group, "type": "classic", "state": "Empty"} in listed
    assert door.post(path, {"topic": topic, "shift": -1}).json["offsets"][0]["committed"] == 1
    assert door.post(path, {"topic": topic, "to": 99}).json["offsets"][0]["committed"] == 3
    assert door.post(path, {"topic": topic, "timestamp": 0}).json["offsets"][0]["committed"] == 0
    both = door.post(path, {"topic": topic, "to": 1, "shift": 1})
    assert (both.status, both.problem) == (400, "invalid-request")

    assert door.send("DELETE", f"/v1/groups/{group}").status == 204
    gone = door.get(f"/v1/groups/{group}")
    assert (gone.status, gone.problem) == (404, "no-such-group")


def test_a_group_that_has_no_offsets_begins_where_it_is_told(door: RestDoor) -> None:
    topic, group = made(door), next(names)
    write(door, topic, "a")
    path = f"/v1/groups/{group}/topics/{topic}/records"
    assert door.get(f"{path}?start=latest").json == {
        "records": [],
        "offsets": [{"topic": topic, "partition": 0, "offset": 1}],
    }
    assert len(door.get(path).json["records"]) == 1


# Streams


class Events:
    """A stream of events that `curl` reads."""

    def __init__(self, door: RestDoor, path: str, *options: str) -> None:
        assert CURL is not None
        command = [CURL, "-sN", "--max-time", "60", *options, door.url + path]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def next(self) -> dict[str, str]:
        """The next event with data."""
        fields: dict[str, str] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.decode().rstrip("\n")
            if not text and "data" in fields:
                return fields
            name, _, value = text.partition(": ")
            if name:
                fields[name] = value
        raise AssertionError(f"the stream ended: {fields}")

    def values(self, number: int) -> list[Any]:
        return [json.loads(self.next()["data"])["value"] for _ in range(number)]


def test_a_tail_shows_records_as_they_come(door: RestDoor) -> None:
    topic = made(door, partitions=2)
    write(door, topic, "a", partition=0)
    with Events(door, f"/v1/topics/{topic}/stream?from=earliest") as events:
        first = events.next()
        assert json.loads(first["data"])["value"] == "a"
        write(door, topic, "b\n\nc", partition=1)
        second = events.next()
        assert json.loads(second["data"])["value"] == "b\n\nc"
        assert second["id"] == "0:1,1:1"
    write(door, topic, "d", partition=0)
    with Events(door, f"/v1/topics/{topic}/stream", "-H", f"Last-Event-ID: {first['id']}") as events:
        assert sorted(events.values(2)) == ["b\n\nc", "d"]
    with Events(door, f"/v1/topics/{topic}/stream?from=1&partition=0") as events:
        assert events.values(1) == ["d"]


def test_members_of_a_group_share_partitions_and_commit(door: RestDoor) -> None:
    topic, group = made(door, partitions=2), next(names)
    path = f"/v1/groups/{group}/topics/{topic}/stream"
    with Events(door, path) as one:
        write(door, topic, "a", partition=0)
        assert one.values(1) == ["a"]
        busy = door.post(f"/v1/groups/{group}/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]})
        assert (busy.status, busy.problem) == (409, "group-in-use")
        write(door, topic, "b", partition=1)
        assert one.values(1) == ["b"]
        write(door, topic, "c", partition=1)
        assert one.values(1) == ["c"]
    with Events(door, path) as other:
        write(door, topic, "d", partition=0)
        seen = other.next()
        while json.loads(seen["data"])["value"] != "d":  # what was sent last may come again
            seen = other.next()
            assert json.loads(seen["data"])["value"] in ("c", "d")


def test_a_tail_of_what_is_not_there(door: RestDoor) -> None:
    gone = door.get("/v1/topics/nothing/stream")
    assert (gone.status, gone.problem) == (404, "no-such-topic")
    topic = made(door)
    no_partition = door.get(f"/v1/topics/{topic}/stream?partition=5")
    assert (no_partition.status, no_partition.problem) == (404, "no-such-topic")
    no_offset = door.get(f"/v1/topics/{topic}/stream?from=5")
    assert (no_offset.status, no_offset.problem) == (400, "invalid-request")


# Queues


def queue_with(door: RestDoor, *messages: Any, **options: Any) -> str:
    name = next(names)
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
    letters = f"{next(names)}-dead"
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


# The cluster, and requests that are wrong


def test_the_cluster_and_its_health(door: RestDoor) -> None:
    cluster = fits(door.get("/v1/cluster"), "describeCluster")
    assert (cluster["controller"], cluster["broker"]) == (1, 1)
    assert cluster["brokers"][0]["doors"]["http"] == f"127.0.0.1:{door.port}"
    assert fits(door.get("/v1/cluster/health"), "readHealth")["status"] == "green"


def test_the_document_is_served(door: RestDoor) -> None:
    found = door.get("/v1/openapi.json").json
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {one.path for one in OPERATIONS}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "problem", "detail"),
    [
        ("GET", "/v1/nothing", None, 404, "no-such-resource", "nothing at this path"),
        ("PUT", "/v1/topics", None, 405, "method-not-allowed", "GET, POST"),
        ("GET", "/v1/topics?limit=0", None, 400, "invalid-request", "limit: 0 is not between 1 and 1000"),
        ("GET", "/v1/topics?Limit=1", None, 400, "invalid-request", "Limit: unknown parameter; known are prefix"),
        ("GET", "/v1/topics?limit=1&limit=2", None, 400, "invalid-request", "more than once"),
        ("GET", "/v1/topics/a%2Fb", None, 400, "invalid-request", "topic: 'a/b' is not a topic name"),
        ("GET", "/v1/topics/%FF", None, 400, "invalid-request", "not UTF-8"),
        ("GET", "/v1/topics/t/partitions/x/records", None, 400, "invalid-request", "partition: 'x' is not an integer"),
        ("GET", "/v1/topics/t/partitions/0/records?offset=-1", None, 400, "invalid-request", "offset: '-1' is not"),
        ("POST", "/v1/topics", b"", 400, "not-json", "the body is not JSON: it is empty"),
        ("POST", "/v1/topics", b"{", 400, "not-json", "line 1, column 2"),
        ("POST", "/v1/topics", b"[" * 60_000, 400, "not-json", "nested too deeply"),
        ("POST", "/v1/topics", b'{"name": "x", "partition": 1}', 400, "invalid-request", "/partition: unknown field"),
        ("POST", "/v1/topics", b'{"name": "x y"}', 400, "invalid-request", "/name: 'x y' is not a topic name"),
        ("POST", "/v1/topics/t/records", b'{"records": [1]}', 400, "invalid-request", "/records/0: must be an object"),
        ("DELETE", "/v1/topics/t", b"{}", 400, "invalid-request", "takes no body"),
    ],
)
def test_requests_that_are_wrong(
    door: RestDoor, method: str, path: str, body: bytes | None, status: int, problem: str, detail: str
) -> None:
    answered = door.curl(path, "-X", method, data=body)
    assert (answered.status, answered.problem) == (status, problem), answered.json
    assert detail in answered.json["detail"]


def test_a_content_type_that_is_not_taken(door: RestDoor) -> None:
    form = door.curl("/v1/topics/t/records", "-d", "two coffees")
    assert (form.status, form.problem) == (415, "unsupported-media-type")
    assert form.headers["accept"] == "application/json, application/octet-stream, text/plain"


def test_no_broker_is_a_503_with_retry_after() -> None:
    with RestDoor("127.0.0.1:1", limits=Limits(request_s=0.2, retry_s=0.2)) as lonely:
        for answered in (
            lonely.get("/v1/topics"),
            lonely.get("/v1/topics/t/partitions/0/records"),
            lonely.get("/v1/groups"),
        ):
            assert (answered.status, answered.problem) == (503, "unavailable")
            assert answered.headers["retry-after"] == "1"


def test_every_answer_is_compared_with_its_shape() -> None:
    """Whoever adds an operation adds a test: those that answer JSON are named in this file."""
    text = Path(__file__).read_text()
    shaped = [one.id for one in OPERATIONS if any(isinstance(a.shape, Object) for a in one.answers.values())]
    assert [id for id in shaped if f'"{id}"' not in text and not id.startswith(("tail", "stream"))] == []
