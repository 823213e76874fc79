"""The REST API by curl: topics, records, the cluster, and requests that are wrong; answers are as documented."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.cluster import Limits
from tailrace.doors.http.rest.operations import OPERATIONS
from tailrace.doors.http.rest.schema import Object
from tailrace.model.limits import REST_BODY_MAX_BYTES, REST_PRODUCE_MAX_BYTES
from tailrace.testing import Broker
from tests.interop.rest_door import CURL, Answered, RestDoor, fits, made, new_name, write

pytestmark = [pytest.mark.foreign, pytest.mark.skipif(CURL is None, reason="curl is not installed")]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as one:
        yield one


@pytest.fixture(scope="module")
def door(broker: Broker) -> Iterator[RestDoor]:
    with RestDoor(broker.bootstrap, broker=1) as one:
        yield one


def values(door: RestDoor, topic: str, partition: int = 0) -> list[Any]:
    answered = door.get(f"/v1/topics/{topic}/partitions/{partition}/records")
    return [one["value"] for one in fits(answered, "readRecords")["records"]]


# Topics


def test_a_topic_is_created_changed_and_deleted(door: RestDoor) -> None:
    name = new_name()
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
    text = "".join(one.read_text() for one in Path(__file__).parent.glob("test_rest*.py"))
    shaped = [one.id for one in OPERATIONS if any(isinstance(a.shape, Object) for a in one.answers.values())]
    assert [id for id in shaped if f'"{id}"' not in text and not id.startswith(("tail", "stream"))] == []
