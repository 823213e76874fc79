"""`tailrace topic`: output for people and for scripts."""

import json

from tests.unit.cli.program import Program


def test_a_topic_is_created_shown_and_deleted(tailrace: Program, topic: str) -> None:
    made = tailrace("topic", "create", topic, "--partitions", "3", "--config", "retention.ms=60000")
    assert (made.code, made.out, made.err) == (0, "", f"created {topic}\n")
    assert topic in tailrace("topic", "list").out.splitlines()
    (facts,) = json.loads(tailrace("topic", "describe", topic, "--json").out)
    assert facts["name"] == topic
    assert len(facts["id"]) == 22
    assert facts["settings"] == {"retention.ms": "60000"}
    assert [one["partition"] for one in facts["partitions"]] == [0, 1, 2]
    assert all(one["first_offset"] == one["end_offset"] == 0 for one in facts["partitions"])
    removed = tailrace("topic", "delete", topic)
    assert (removed.code, removed.err) == (0, f"deleted {topic}\n")
    assert topic not in tailrace("topic", "list").out.splitlines()


def test_settings_and_partitions_can_change(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic, "-c", "retention.ms=60000")
    changed = tailrace("topic", "alter", topic, "-c", "segment.bytes=1048576", "-u", "retention.ms", "-p", "2")
    assert (changed.code, changed.err) == (0, f"changed {topic}\n")
    (facts,) = json.loads(tailrace("topic", "describe", topic, "--json").out)
    assert facts["settings"] == {"segment.bytes": "1048576"}
    assert len(facts["partitions"]) == 2


def test_describe_for_people(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    tailrace("produce", topic, stdin="a\nb\n")
    shown = tailrace("topic", "describe", topic, "--settings").out
    assert topic in shown
    row = next(line for line in shown.splitlines() if line.split() and line.split()[0] == "0")
    assert row.split() == ["0", "1", "1", "1", "0", "2"]
    assert "retention.ms" in shown


def test_failures_have_exit_code_1_and_name_the_cause(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    again = tailrace("topic", "create", topic)
    assert again.code == 1
    assert "TOPIC_ALREADY_EXISTS" in again.err
    assert tailrace("topic", "create", topic, "--if-not-exists").code == 0
    gone = tailrace("topic", "describe", "no-such-topic")
    assert gone.code == 1
    assert "no-such-topic" in gone.err
    shrunk = tailrace("topic", "alter", topic, "--partitions", "0")
    assert shrunk.code == 1
    refused = tailrace("topic", "alter", topic, "--config", "no.such.setting=1")
    assert refused.code == 1
    assert "no.such.setting" in refused.err


def test_one_invalid_name_does_not_affect_the_others(tailrace: Program, topic: str) -> None:
    ran = tailrace("topic", "create", topic, "not allowed")
    assert ran.code == 1
    assert f"created {topic}" in ran.err
    assert "cannot create topic not allowed" in ran.err
    ran = tailrace("topic", "delete", "no-such-topic", topic)
    assert ran.code == 1
    assert f"deleted {topic}" in ran.err
    assert tailrace("topic", "delete", "no-such-topic", "--if-exists").code == 0


def test_list_as_json_leaves_internal_topics_out(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic, "-p", "2")
    listed = json.loads(tailrace("topic", "list", "--json").out)
    assert {"name": topic, "partitions": 2} in listed
    assert not any(one["name"].startswith("__") for one in listed)
