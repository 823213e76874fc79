"""DescribeTopicPartitions: pages, cursors, and topics that do not exist."""

from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicAsked,
)
from tests.unit.doors.kafka.served import Served, with_broker


async def page(
    served: Served, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicAsked(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic=cursor[0], partition=cursor[1]),
    )
    answer: DescribeTopicPartitionsResponse = await served.call(request, 0)
    return answer


def parts(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [one.partition for one in topic.partitions]) for topic in answer.topics]


@with_broker()
async def test_pages(served: Served) -> None:
    await served.make_topic("b", 3)
    await served.make_topic("a", 2)
    await served.make_topic("c", 1)
    whole = await page(served)
    assert (parts(whole), whole.next_cursor) == ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)
    assert whole.topics[0].topic_authorized_operations == 0b1101_1111_1000
    first = await page(served, "b", "a", limit=3)
    assert (parts(first), first.next_cursor) == ([("a", [0, 1]), ("b", [0])], Cursor(topic="b", partition=1))
    second = await page(served, "b", "a", limit=3, cursor=("b", 1))
    assert (parts(second), second.next_cursor) == ([("b", [1, 2])], None)
    fitting = await page(served, limit=2)
    assert (parts(fitting), fitting.next_cursor) == ([("a", [0, 1])], Cursor(topic="b", partition=0))
    assert parts(await page(served, limit=0)) == [("a", [0])]
    assert parts(await page(served, cursor=("bb", 5))) == [("c", [0])]
    assert parts(await page(served, cursor=("c", 5))) == [("c", [])]


@with_broker()
async def test_pages_of_what_is_not_there(served: Served) -> None:
    await served.make_topic("t")
    answer = await page(served, "t", "never", "b@d")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("b@d", Error.INVALID_TOPIC_EXCEPTION),
        ("never", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]
    (refused,) = (await page(served, "t", cursor=("t", -1))).topics
    assert refused.error_code == Error.INVALID_REQUEST
