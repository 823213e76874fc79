"""Brokers that do not support the level of metadata.version in force: refused at the hello, cut off by a raise."""

import asyncio

import pytest

from tailrace import __version__
from tailrace.broker.peers import LaneKind, OwnLevels, Refused
from tailrace.broker.peers.framing import request_frame
from tailrace.broker.peers.hello import check_answer
from tailrace.cluster.features import LevelRange
from tailrace.testing.simulation import World
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tests.unit.broker.peers.listening import hello, listening
from tests.unit.broker.peers.stage import CLUSTER_ID, Talker, in_world, voter

AT_2 = OwnLevels(supported=LevelRange(1, 2), in_force=lambda: 2)
OLD = hello(2, release="0.1.0")
REFUSED = (
    "broker 2 (tailrace 0.1.0) supports metadata.version 1, the cluster is at metadata.version 2: "
    "start it with tailrace >= 0.2.0"
)


class Dial:
    """The level in force, which a test raises."""

    def __init__(self) -> None:
        self.level = 1

    def __call__(self) -> int:
        return self.level


def test_the_hello_of_a_broker_that_supports_level_1_is_that_of_0_1_0_to_the_byte() -> None:
    told = hello(2, release="0.1.0", first_level=1, last_level=1)
    assert request_frame(told, 0, 1) == request_frame(OLD, 0, 1)
    assert bytes(request_frame(OLD, 0, 1)).endswith(b"\x060.1.0\0"), "no tagged field follows"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (OLD, REFUSED),
        (hello(2, lane=LaneKind.FETCH, release="0.1.0"), REFUSED),
        (hello(-1, cluster_id="", to=-1), "the broker that asks to join (tailrace 0.1.0) supports metadata.version 1,"),
        (
            hello(2, release="0.9", first_level=3, last_level=4),
            "broker 2 (tailrace 0.9) supports metadata.version 3 to",
        ),
    ],
)
def test_a_broker_that_does_not_support_the_level_in_force_is_refused_by_name(said: PeerHello, why: str) -> None:
    async def scenario() -> None:
        async with listening(AT_2) as one:
            raw, answer = await one.greet(said)
            assert answer.error_code == Error.UNSUPPORTED_VERSION
            assert (answer.error_message or "").startswith(why)
            assert await raw.closed()
            (line,) = one.logged
            assert f"UNSUPPORTED_VERSION: {why}" in line

    asyncio.run(scenario())


def test_a_broker_that_supports_the_level_in_force_is_welcome() -> None:
    async def scenario() -> None:
        async with listening(AT_2) as one:
            for said in (hello(2, last_level=2), hello(3, first_level=2, last_level=7)):
                _, answer = await one.greet(said)
                assert answer.error_code == 0

    asyncio.run(scenario())


def test_the_connecting_side_refuses_as_well() -> None:
    said, old = hello(1, to=2), PeerHelloAnswer(cluster_id=CLUSTER_ID, broker_id=2)
    for level in (1, None):
        check_answer(old, said, level)
    with pytest.raises(Refused) as refused:
        check_answer(old, said, 2)
    assert (refused.value.why, refused.value.by_peer) == (REFUSED, False)


def test_a_raise_cuts_off_brokers_that_do_not_support_the_level_and_no_others() -> None:
    async def scenario(world: World) -> None:
        dial = Dial()
        new = OwnLevels(supported=LevelRange(1, 2), in_force=dial)
        old = OwnLevels(supported=LevelRange(1, 1), in_force=lambda: 1)
        one, two, three = talkers = [Talker(world, number, levels=new if number < 3 else old) for number in (1, 2, 3)]
        for each in talkers:
            await each.boot()
        for each in talkers:
            await each.meet(*(other for other in talkers if other is not each))
        await world.until(lambda: all(len(each.peers.live) == 2 for each in talkers), within_seconds=30)
        dial.level = 2
        for each in (one, two):
            await each.do(lambda peers: peers.level_raised())
        await world.until(lambda: three.peers.live == (), within_seconds=30)
        await world.until(lambda: three.peers.incompatible != "", within_seconds=30)
        assert three.peers.incompatible == (
            f"broker 3 (tailrace {__version__}) supports metadata.version 1, the cluster is at metadata.version 2: "
            "start it with tailrace >= 0.2.0"
        )
        assert (one.peers.live, two.peers.live) == ((2,), (1,))
        assert [note for note in one.lanes if note[1] == 2 and note[0] == "down"] == []
        assert (one.peers.incompatible, two.peers.incompatible) == ("", "")

    in_world(scenario)


def test_a_hello_tells_the_levels_of_its_broker() -> None:
    async def scenario() -> None:
        async with listening(AT_2) as one:
            _, answer = await one.greet(hello(2, last_level=2))
            assert (answer.first_level, answer.last_level, answer.release) == (1, 2, __version__)
            assert answer.directory_id == voter(1).directory

    asyncio.run(scenario())
