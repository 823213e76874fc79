"""What one consumer group may cost: expressions and names are counted, and expressions cost what they are worth."""

import time

import pytest

from tailrace.groups.consumer import expressions
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.requests import Heartbeat
from tailrace.groups.consumer.sharing import Wish, uniform
from tailrace.groups.groups import Groups
from tailrace.groups.requests import Joining, MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import GroupFull, InconsistentProtocol, InvalidExpression
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import (
    GROUP_EXPRESSION_MAX_CHARS,
    GROUP_EXPRESSIONS_MAX,
    GROUP_PROTOCOLS_MAX,
    GROUP_SUBSCRIBED_NAMES_MAX,
)
from tests.unit.groups.consumer_stage import StagedTopics, id_of, plain_rules
from tests.unit.groups.mixed_stage import MixedStage
from tests.unit.state_tables import transcripts_of


class Coordinator:
    def __init__(self) -> None:
        self.groups = Groups()
        self.topics = StagedTopics()

    def join(
        self, name: str, expression: str | None = None, names: tuple[str, ...] | None = None, epoch: int = 0
    ) -> None:
        turn = GroupTurn(now=0.0, wall_ms=0, rules=plain_rules, alarms=self.groups.alarms, topics=self.topics)
        beat = Heartbeat(
            who=MemberId(name), epoch=epoch, rebalance_timeout_ms=1, names=names, expression=expression, owned=()
        )
        self.groups.beat("g", beat, turn)
        for entry in turn.records:
            self.groups.replay(entry)


def joining_with(count: int) -> Joining:
    return Joining(
        who=MemberId(""),
        client_id="o",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols={f"p{number}": bytes(10) for number in range(count)},
    )


def test_a_group_has_so_many_expressions() -> None:
    coordinator = Coordinator()
    for number in range(GROUP_EXPRESSIONS_MAX):
        coordinator.join(f"m{number}", f"t{number}")
    with pytest.raises(InvalidExpression, match="other expressions"):
        coordinator.join("one too many", "another")
    coordinator.join("one more", "t0")  # which is known


def test_an_expression_is_so_long() -> None:
    coordinator = Coordinator()
    with pytest.raises(InvalidExpression, match="characters"):
        coordinator.join("m", "t" * (GROUP_EXPRESSION_MAX_CHARS + 1))
    with pytest.raises(InvalidExpression):
        coordinator.join("m", "((a{1000}){1000}){1000}")  # short, and would need all memory
    with pytest.raises(InvalidExpression, match=r"steps, of 4000 .* repeat less"):
        coordinator.join("m", ".*a.{900}")  # would take its time for each name
    coordinator.join("m", r"\p{L}+[.-]\p{L}+[.-]\p{N}+")


def test_a_member_of_the_classic_protocol_has_so_many_protocols_here_too() -> None:
    coordinator = Coordinator()
    coordinator.join("m", names=("t",))
    turn = GroupTurn(now=0.0, wall_ms=0, rules=plain_rules, alarms=coordinator.groups.alarms, topics=coordinator.topics)
    with pytest.raises(InconsistentProtocol, match="101 protocols"):
        coordinator.groups.join("g", joining_with(GROUP_PROTOCOLS_MAX + 1), "o", "o", turn)
    coordinator.groups.join("g", joining_with(GROUP_PROTOCOLS_MAX), "o", "o", turn)


def test_members_name_so_many_topics() -> None:
    coordinator = Coordinator()
    half = tuple(str(number) for number in range(GROUP_SUBSCRIBED_NAMES_MAX // 2))
    coordinator.join("a", names=half)
    coordinator.join("b", names=half)
    with pytest.raises(GroupFull, match="topics"):
        coordinator.join("c", names=("t",))


def test_an_expression_that_would_take_others_ages_takes_none() -> None:
    assert expressions.matching("(a|aa|aaa)+b", ["a" * 200, "a" * 200 + "b"], {}) == ("a" * 200 + "b",)


def test_where_groups_of_an_expression_are_is_not_asked_for() -> None:
    assert expressions.compiled("(t|o|p|i|c|-|[0-9]+)*" * 40).groups == 0


def test_what_was_tried_before_is_not_tried_again() -> None:
    assert expressions.matching("t.*", ["a", "t1", "t2"], {"t.*": {"a": True, "t1": False}}) == ("a", "t2")
    assert expressions.matching("(", ["a"], {"(": {"a": True}}) == ("a",)


def test_who_goes_does_not_let_expressions_be_tried_and_the_next_heartbeat_does() -> None:
    coordinator = Coordinator()
    coordinator.topics.make("t1", 1)
    coordinator.join("m", "t.*")
    coordinator.join("n", names=("t1",))
    coordinator.topics.make("t2", 1)
    left = {"t.*": ["t2"]}
    assert coordinator.groups.untried("g", None, coordinator.topics, {}) == left
    coordinator.join("n", names=None, epoch=-1)
    group = coordinator.groups.find_kind("g", ConsumerGroup)
    assert (group.expressions, list(group.members)) == ({"t.*": ("t1",)}, ["m"])
    assert coordinator.groups.untried("g", "u", coordinator.topics, {"t.*": {}}) == left | {"u": ["t1", "t2"]}
    coordinator.join("m", "t.*")
    assert group.expressions == {"t.*": ("t1", "t2")}
    assert coordinator.groups.untried("g", "t.*", coordinator.topics, {}) == {}


def test_new_topics_are_found_among_many_and_old_ones_forgotten() -> None:
    coordinator = Coordinator()
    for number in range(50):
        coordinator.topics.make(f"t{number}", 1)
    coordinator.join("m", "t.*")
    coordinator.join("m", "t.*")  # all are known by now, and only what is new is tried
    for name in ("t50", "u"):
        coordinator.topics.make(name, 1)
    coordinator.topics.remove("t7")
    coordinator.join("m", "t.*")
    group = coordinator.groups.find_kind("g", ConsumerGroup)
    assert group.expressions["t.*"] == tuple(sorted(f"t{number}" for number in range(51) if number != 7))


def test_nobody_who_has_gone_is_remembered_as_called() -> None:
    called = 0
    for path in transcripts_of("consumer_groups"):
        stage = MixedStage()
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "    ")):
                stage.play(line)
                for group in stage.groups.groups.values():
                    if isinstance(group, ConsumerGroup):
                        assert all(one in group.members for one in group.called), (path, line)
                        called += len(group.called)
    assert called


def test_work_of_members_who_do_not_read_the_same_is_shared_out_in_no_time() -> None:
    topics = [id_of(str(number)) for number in range(1000)]
    everything = tuple(TopicPartition(topic, 0) for topic in sorted(topics))
    wishes = {"a": Wish(None, tuple(sorted(topics)), everything), "b": Wish(None, tuple(sorted(topics[1:])))}
    began = time.process_time()
    shares = uniform(wishes, dict.fromkeys(topics, 1))
    assert time.process_time() - began < 2  # 10 ms; 15 s, if every move let it begin anew
    assert [len(one) for one in shares.values()] == [500, 500]


def test_a_topic_of_many_partitions_is_passed_on_to_many_members_in_no_time() -> None:
    topics = sorted([id_of("large"), id_of("small")])
    partitions = {id_of("large"): 10_000, id_of("small"): 1}
    everything = tuple(TopicPartition(topic, one) for topic in topics for one in range(partitions[topic]))
    wishes = {f"m{number}": Wish(None, (id_of("large"),)) for number in range(1000)}
    wishes["m0"] = Wish(None, tuple(topics), everything)
    began = time.process_time()
    shares = uniform(wishes, partitions)
    assert time.process_time() - began < 2  # 0.1 s; 5 s, if all were looked at for every move
    assert {len(one) for one in shares.values()} == {10, 11}
