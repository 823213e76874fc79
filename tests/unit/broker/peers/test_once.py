"""`call_once`, with which a broker asks to join: the answer, and the errors when it is refused."""

import pytest

from tailrace.broker.peers import Refused, Unreachable, call_once
from tailrace.model.ids import NO_ID, Id
from tailrace.testing.simulation import World
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello
from tailrace.wire.messages.peers.join_cluster import JoinClusterAnswer
from tests.unit.broker.peers.stage import JOINING, PEER_PORT, forward, in_world, meeting

joiner = PeerHello(cluster_id="", broker_id=-1, directory_id=Id(b"d" * 16))


def test_a_joiner_asks_once() -> None:
    async def scenario(world: World) -> None:
        (one,) = await meeting(world, 1)
        stranger = world.machine("stranger")
        net = stranger.boot().net
        answer = await stranger.run(call_once(net, "b1", PEER_PORT, joiner, JOINING, 5.0))
        assert answer == JoinClusterAnswer(broker_id=7, cluster_id="the-cluster")
        assert one.callers == [-1]
        await world.until(lambda: world.network.open_connections == 0)

    in_world(scenario)


def test_a_joiner_is_told_why_not() -> None:
    async def scenario(world: World) -> None:
        (one,) = await meeting(world, 1)
        stranger = world.machine("stranger")
        net = stranger.boot().net

        async def ask(port: int, hello: PeerHello, request: object = JOINING) -> None:
            await stranger.run(call_once(net, "b1", port, hello, request, 2.0))

        other = PeerHello(cluster_id="another", broker_id=9, directory_id=NO_ID)
        with pytest.raises(Refused, match="INCONSISTENT_CLUSTER_ID: this is cluster the-cluster, not another") as told:
            await ask(PEER_PORT, other)
        assert told.value.error is Error.INCONSISTENT_CLUSTER_ID
        with pytest.raises(Unreachable, match="refused"):
            await ask(1, joiner)
        with pytest.raises(Unreachable):
            await ask(PEER_PORT, joiner, forward(1))  # it may only ask to join
        one.machine.pause()
        with pytest.raises(Unreachable, match="did not answer within"):
            await ask(PEER_PORT, joiner)
        assert one.callers == []

    in_world(scenario)
