"""The REST API by curl: consumer groups, and streams of server-sent events."""

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.testing import Broker
from tests.interop.rest_door import CURL, RestDoor, fits, made, new_name, write

pytestmark = [pytest.mark.foreign, pytest.mark.skipif(CURL is None, reason="curl is not installed")]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as one:
        yield one


@pytest.fixture(scope="module")
def door(broker: Broker) -> Iterator[RestDoor]:
    with RestDoor(broker.bootstrap, broker=1) as one:
        yield one


def test_a_group_reads_and_commits(door: RestDoor) -> None:
    topic, group = made(door), new_name()
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
    topic, group = made(door), new_name()
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


@pytest.mark.parametrize(
    "path", ["topics/{}/stream", "groups/waiting/topics/{}/stream", "topics/{}/partitions/0/records?wait_ms=60000"]
)
def test_one_stream_or_long_poll_too_many_is_told_to_come_again(
    door: RestDoor, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.doors.http.rest.service.REST_STREAMS_MAX", 1)
    topic = made(door)
    write(door, topic, "a")
    with Events(door, f"/v1/topics/{topic}/stream?from=earliest") as events:
        events.next()
        refused = door.get("/v1/" + path.format(topic) + ("&offset=latest" if "?" in path else ""))
        assert (refused.status, refused.problem) == (429, "too-many-requests")
        assert refused.headers["retry-after"]
        assert door.get(f"/v1/topics/{topic}/partitions/0/records?wait_ms=60000").status == 200  # there is a record
    deadline = time.monotonic() + 20.0
    while door.get(f"/v1/topics/{topic}/partitions/0/records?offset=latest&wait_ms=1").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_members_of_a_group_share_partitions_and_commit(door: RestDoor) -> None:
    topic, group = made(door, partitions=2), new_name()
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
