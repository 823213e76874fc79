"""Leadership goes back to who follows, not to who has just gone: producers would wait for the dead."""

import asyncio

from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until


@with_cluster(leader_imbalance_check_interval_seconds=1)
async def test_leadership_does_not_go_back_to_who_has_just_gone(cluster: Clustered) -> None:
    await cluster.make_topic("t", (2, 1, 3))
    await cluster[2].node.quorums.peers.close()
    others = [cluster.replica(broker, "t") for broker in (1, 3)]
    await until(lambda: any(one.leads for one in others))
    looked_at_least_once = asyncio.get_running_loop().time() + 1.5
    handed: list[bool] = []

    def time_is_up() -> bool:
        handed.extend(one.replica.hands_over for one in others)
        return asyncio.get_running_loop().time() > looked_at_least_once

    await until(time_is_up)
    assert not any(handed)
