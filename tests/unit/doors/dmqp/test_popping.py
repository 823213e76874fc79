"""POP gives each message once, PEEK shows what POP would give, and an empty topic is ENODATA."""

import asyncio

from tailrace.doors.dmqp.codec import Method, Status
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES
from tests.unit.doors.dmqp.served import Client, Served, with_door


async def popped(client: Client, topic_id: int = 0) -> list[bytes]:
    """Every message that is left."""
    found = []
    while (payload := await client.pop(topic_id)) is not None:
        found.append(payload)
    return found


@with_door()
async def test_a_topic_that_was_never_pushed_to_is_empty(served: Served) -> None:
    client = await served.client()
    for method in (Method.POP, Method.PEEK, Method.PEEK_TIMESTAMP):
        assert await client.call(method, 200) == (Status.ENODATA, b"", 0, 200)


@with_door()
async def test_a_message_comes_out_once_with_its_timestamp(served: Served) -> None:
    client = await served.client()
    pushed = await client.call(Method.PUSH, 5, b"\x00\xffbytes")
    answer = await client.call(Method.POP, 5)
    assert answer == (Status.OK, b"\x00\xffbytes", pushed.timestamp, 5)
    assert (await client.call(Method.POP, 5)).status is Status.ENODATA


@with_door()
async def test_every_message_of_every_shard_comes_out_and_shards_are_in_order(served: Served) -> None:
    client = await served.client()
    for number in range(30):
        await client.push(b"%d" % number)
    found = [int(payload) for payload in await popped(client)]
    assert sorted(found) == list(range(30))
    for shard in range(3):  # single pushes go to the shards in turn
        of_shard = [number for number in found if number % 3 == shard]
        assert of_shard == sorted(of_shard)


@with_door(dmqp_shards=1)
async def test_one_shard_is_in_order(served: Served) -> None:
    client = await served.client()
    for number in range(60):
        client.send(Method.PUSH, 0, b"%d" % number)
    for _ in range(60):
        assert (await client.answer()).status is Status.OK
    assert await popped(client) == [b"%d" % number for number in range(60)]


@with_door()
async def test_peek_shows_what_pop_gives_and_takes_nothing(served: Served) -> None:
    client = await served.client()
    for number in range(12):
        await client.push(b"%d" % number)
    for _ in range(12):
        shown = [await client.call(Method.PEEK) for _ in range(2)][-1]
        stamp = await client.call(Method.PEEK_TIMESTAMP)
        assert (stamp.status, stamp.payload) == (Status.OK, b"")
        again = await client.call(Method.PEEK)
        taken = await client.call(Method.POP)
        assert again == taken
        assert shown.status is Status.OK
    assert (await client.call(Method.PEEK)).status is Status.ENODATA


@with_door()
async def test_topics_are_isolated(served: Served) -> None:
    client = await served.client()
    for topic_id in (0, 1, 255):
        await client.push(b"of %d" % topic_id, topic_id)
    assert await popped(client, 2) == []
    for topic_id in (255, 0, 1):
        assert await popped(client, topic_id) == [b"of %d" % topic_id]


@with_door()
async def test_two_clients_that_pop_at_once_never_get_the_same_message(served: Served) -> None:
    pusher = await served.client()
    for number in range(60):
        pusher.send(Method.PUSH, 0, b"%d" % number)
    for _ in range(60):
        await pusher.answer()

    async def take_all(client: Client) -> list[bytes]:
        found: list[bytes] = []
        while True:
            answer = await client.call(Method.POP)
            if answer.status is Status.OK:
                found.append(answer.payload)
            elif answer.status is Status.ENODATA:
                return found

    clients = [await served.client() for _ in range(4)]
    shares = await asyncio.gather(*map(take_all, clients))
    assert sorted(int(one) for share in shares for one in share) == list(range(60))


@with_door()
async def test_exactly_one_mebibyte_comes_out_as_it_went_in(served: Served) -> None:
    client = await served.client()
    whole = bytes(range(256)) * (DMQP_PAYLOAD_MAX_BYTES // 256)
    await client.push(whole)
    assert (await client.call(Method.PEEK)).payload == whole
    assert await client.pop() == whole


@with_door()
async def test_requests_of_one_connection_are_served_in_their_order(served: Served) -> None:
    """A POP sees the PUSH before it, and not the one behind it."""
    client = await served.client()
    for method, payload in [
        (Method.POP, b""),
        (Method.PUSH, b"a"),
        (Method.POP, b""),
        (Method.POP, b""),
        (Method.PUSH, b"b"),
        (Method.PEEK, b""),
    ]:
        client.send(method, 0, payload)
    answers = [await client.answer() for _ in range(6)]
    assert [(one.status, one.payload) for one in answers] == [
        (Status.ENODATA, b""),
        (Status.OK, b""),
        (Status.OK, b"a"),
        (Status.ENODATA, b""),
        (Status.OK, b""),
        (Status.OK, b"b"),
    ]


@with_door()
async def test_a_message_of_another_door_that_is_too_large_is_refused_and_given_up(served: Served) -> None:
    client = await served.client()
    await client.push(b"creates the topic")
    assert await client.pop() is not None
    with served.upstream.producers.of("someone") as producer:
        await (await producer.send("dmqp-0", bytes(DMQP_PAYLOAD_MAX_BYTES + 1), partition=0))
        await (await producer.send("dmqp-0", b"behind it", partition=0))
    assert (await client.call(Method.PEEK)).status is Status.EMSGSIZE
    assert (await client.call(Method.POP)).status is Status.EMSGSIZE
    assert await client.pop() == b"behind it"


@with_door()
async def test_a_message_without_a_value_is_an_empty_one(served: Served) -> None:
    client = await served.client()
    await client.push(b"x")
    assert await client.pop() == b"x"
    with served.upstream.producers.of("someone") as producer:
        await (await producer.send("dmqp-0", None, key=b"k", headers=(("h", b"v"),), partition=1))
    assert await client.pop() == b""
