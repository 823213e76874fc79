"""The `uniform` assignor is fast enough for large groups; what it computes is tested in tests/properties."""

import time

from tailrace.groups.consumer.assignors import AssignorMember, uniform_assignor
from tailrace.model.ids import TopicPartition
from tests.unit.groups.consumer.stage import id_of


def test_many_topics_with_different_subscriptions() -> None:
    topics = [id_of(str(number)) for number in range(1000)]
    everything = tuple(TopicPartition(topic, 0) for topic in sorted(topics))
    members = {
        "a": AssignorMember(None, tuple(sorted(topics)), everything),
        "b": AssignorMember(None, tuple(sorted(topics[1:]))),
    }
    began = time.process_time()
    assignments = uniform_assignor(members, dict.fromkeys(topics, 1))
    assert time.process_time() - began < 2  # takes 10 ms; 15 s if every move started from the beginning
    assert [len(one) for one in assignments.values()] == [500, 500]


def test_a_topic_with_many_partitions_and_many_members() -> None:
    topics = sorted([id_of("large"), id_of("small")])
    partitions = {id_of("large"): 10_000, id_of("small"): 1}
    everything = tuple(TopicPartition(topic, one) for topic in topics for one in range(partitions[topic]))
    members = {f"m{number}": AssignorMember(None, (id_of("large"),)) for number in range(1000)}
    members["m0"] = AssignorMember(None, tuple(topics), everything)
    began = time.process_time()
    assignments = uniform_assignor(members, partitions)
    assert time.process_time() - began < 2  # takes 0.1 s; 5 s if every move looked at all members
    assert {len(one) for one in assignments.values()} == {10, 11}
