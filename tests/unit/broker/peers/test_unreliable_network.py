"""Three brokers that exchange messages during resets, partitions, crashes and pauses, chosen by a seed.

Between two incarnations of a pair of brokers, messages arrive in order and at most once, and every call ends with the
right answer or with an error. When the faults end, all brokers are connected and receive each other's messages.
"""

import asyncio

import pytest

from tailrace.broker.peers import LaneKind, Unreachable
from tailrace.model.ids import BrokerId
from tailrace.testing.simulation import World
from tailrace.wire.messages.peers.forward import Forward
from tests.unit.broker.peers.stage import Talker, fetch_frame, in_world, key, meeting, vote_request

ROUNDS = 12
CALL_MAX_S = 2.0


class Chatter:
    """One broker that says something new to every other, again and again."""

    def __init__(self, world: World, talker: Talker, others: list[Talker]) -> None:
        self.world = world
        self.talker = talker
        self.others = others
        self.number = 0
        self.answered = 0

    async def talk(self) -> None:
        """For as long as its process lives. Numbers rise over all of its lives."""
        loop, random = asyncio.get_running_loop(), self.talker.ports.random
        while True:
            self.number = number = max(self.number + 1, int(loop.time() * 1000))
            for other in self.others:
                self.say(other.me.broker, number)
            await self.ask(self.others[random.below(len(self.others))].me.broker, number)
            await asyncio.sleep(random.uniform(0, 0.3))

    def say(self, to: BrokerId, number: int) -> None:
        peers = self.talker.peers
        for partition in range(3):
            peers.send(to, key(partition), vote_request(self.talker.me, to, number))
        peers.lane(to, LaneKind.FETCH).send([fetch_frame(number.to_bytes(8, "big") * 200, number)])

    async def ask(self, broker: BrokerId, number: int) -> None:
        body = number.to_bytes(8, "big") * 100
        try:
            answer = await self.talker.peers.call(broker, Forward(api_key=0, api_version=0, body=body), CALL_MAX_S)
        except Unreachable:
            return
        assert answer.body == body
        self.answered += 1


async def trouble(world: World, talkers: list[Talker], chatters: list[Chatter]) -> None:
    chance = world.random
    one, two = chance.sample(talkers, 2)
    names = (one.machine.name, two.machine.name)
    match chance.choice(["reset", "cut", "cut", "one way", "isolate", "kill", "plug", "pause", "calm"]):
        case "reset":
            world.network.reset(*names)
        case "cut":
            world.network.cut(*names)
        case "one way":
            world.network.cut(*names, one_way=True)
        case "isolate":
            world.network.isolate(names[0])
        case "pause":
            one.machine.pause()
            await asyncio.sleep(chance.uniform(0, 8))
            one.machine.resume()
        case "kill" | "plug" as how:
            one.machine.crash(power_loss=how == "plug")
            await asyncio.sleep(chance.uniform(0, 8))
            await back(one, talkers, chatters)
    await asyncio.sleep(chance.uniform(0, 8))
    if chance.random() < 0.6:
        world.network.heal()


async def back(one: Talker, talkers: list[Talker], chatters: list[Chatter]) -> None:
    check_order(one)
    one.frames.clear()  # a new life hears anew
    await one.boot()
    await one.meet(*(other for other in talkers if other is not one))
    one.machine.spawn(chatters[talkers.index(one)].talk())


def check_order(one: Talker) -> None:
    """Of each sender and partition the numbers rise."""
    heard: dict[tuple[int, object], list[int]] = {}
    for frame in one.frames:
        for sender, partition, message in frame:
            heard.setdefault((sender, partition), []).append(message.epoch)
    for numbers in heard.values():
        assert numbers == sorted(set(numbers))


async def story(world: World) -> None:
    talkers = await meeting(world, 3)
    chatters = [Chatter(world, one, [other for other in talkers if other is not one]) for one in talkers]
    for chatter in chatters:
        chatter.talker.machine.spawn(chatter.talk())
    for _ in range(ROUNDS):
        await trouble(world, talkers, chatters)
    world.network.heal()
    await world.until(lambda: all(len(one.peers.live) == 2 for one in talkers), within_seconds=15)
    begins = world.loop.time() * 1000
    await world.until(lambda: all(heard_all(one, talkers, begins) for one in talkers), within_seconds=15)
    for one in talkers:
        check_order(one)
    assert sum(chatter.answered for chatter in chatters) > 100


def heard_all(one: Talker, talkers: list[Talker], since: float) -> bool:
    """Both others' messages, and answers to fetches, of after that time."""
    senders = {sender for frame in one.frames for sender, _, message in frame if message.epoch >= since}
    fetched = {frame[-8:] for frame in one.fetched_frames if int.from_bytes(frame[-8:], "big") >= since}
    return len(senders) == len(talkers) - 1 and bool(fetched)


@pytest.mark.parametrize("seed", range(12))
def test_messages_arrive_in_order_and_once(seed: int) -> None:
    in_world(story, seed)


def test_a_seed_is_reproducible() -> None:
    assert in_world(story, 3) == in_world(story, 3) != in_world(story, 4)
