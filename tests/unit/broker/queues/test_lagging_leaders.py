"""Leaders of share partitions whose metadata lags behind: they apply no settings but the group's own."""

from typing import Any

import pytest

from tailrace.model.faults import NotLeader
from tailrace.model.ids import Id
from tailrace.queues.state import ShareKey
from tailrace.raft.events import Transfer
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tests.unit.broker.queues.test_share_partitions import GROUP, make_queue, place, take
from tests.unit.broker.simulated import Brokers, simulated

ONE: dict[str, Any] = {"share_coordinator_state_topic_num_partitions": 1, "offsets_topic_num_partitions": 1}
RECORDS = 3


async def lead(brokers: Brokers, broker: int, topic: str) -> None:
    """Transfer the leadership of a topic's only partition."""
    leader = next(one for one in brokers.ids if any(it.leads for it in brokers[one].hosted.of_topic(topic)))
    if leader != broker:
        target = brokers.replica(broker, topic).me
        brokers.within(leader, lambda: brokers.replica(leader, topic).member.step(Transfer(target)))
        await brokers.until(lambda: brokers.replica(broker, topic).leads)


async def let_broker_2_lag(brokers: Brokers, leader: int) -> None:
    """A topic with records, and a group that is to begin at the first of them. Broker 2 does not know that: it is cut
    off from the controller, broker 1, and from nobody else."""
    await make_queue(brokers, leader, 5 - leader, records=RECORDS, group="before")  # now there are all internal topics
    await lead(brokers, 3, "__share_group_state")
    await brokers.elapse(1.0)
    brokers.world.network.cut("b1", "b2")
    names = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": "1"}
    changes = tuple(ConfigChange(name=name, config_operation=0, value=value) for name, value in names.items())
    resource = ResourceToAlter(resource_type=GROUP, resource_name="g", configs=changes)
    answer = await brokers.call(1, IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert answer.resources[0].error_code == 0, answer.resources[0].error_message


async def initialize(brokers: Brokers) -> None:
    """What a group coordinator on broker 3 does."""
    node = brokers[3]
    topic_id = place(brokers, 3).topic_id

    async def work() -> None:
        metadata_end = await node.control.calls.metadata_end()
        await node.coordinators.leader_calls.initialize("g", Id(topic_id), 0, 1, -1, metadata_end)

    await brokers.machine(3).run(work())


@simulated(**ONE)
async def test_a_group_begins_where_its_settings_say_at_a_leader_that_did_not_know_them(brokers: Brokers) -> None:
    await let_broker_2_lag(brokers, leader=2)
    with pytest.raises(NotLeader, match=r"has applied the metadata up to offset \d+, \d+ is needed"):
        await initialize(brokers)
    assert "g" not in brokers[2].hosted.image.group_settings
    brokers.world.network.heal()
    await brokers.until(lambda: 2 in brokers[3].hosted.image.live)
    await initialize(brokers)
    assert list((await take(brokers, 2)).values()) == [1], "the first message, and no more than one is locked"


@simulated(**ONE)
async def test_the_next_leader_delivers_when_it_knows_the_settings_that_the_group_began_with(brokers: Brokers) -> None:
    await let_broker_2_lag(brokers, leader=3)
    await initialize(brokers)
    await lead(brokers, 2, "t")
    shares, key = brokers[2].coordinators.share_partitions, ShareKey("g", *place(brokers, 2))
    with pytest.raises(NotLeader, match=r"has applied the metadata up to offset \d+, \d+ is needed"):
        await brokers.machine(2).run(shares.open(key))
    brokers.world.network.heal()
    assert list((await take(brokers, 2, wait_s=5.0)).values()) == [1]
