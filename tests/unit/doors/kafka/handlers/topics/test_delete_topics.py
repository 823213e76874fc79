"""DeleteTopics: by name and by id, duplicates, and delete.topic.enable=false."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_topics import DeletedTopic, DeleteTopicsRequest, TopicToDelete
from tests.unit.doors.kafka.served import Served, versions, with_broker


async def delete(served: Served, version: int, *names: str) -> list[DeletedTopic]:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=names)
    else:
        request = DeleteTopicsRequest(topics=tuple(TopicToDelete(name=name) for name in names))
    answer = await served.call(request, version)
    return list(answer.topics)


@with_broker()
async def test_every_version_deletes_by_name(served: Served) -> None:
    for version in versions(20):
        topic_id = await served.make_topic("t", 2)
        await served.produce("t", 1000)
        folders = [partition.log.folder for partition in served.node.hosted.of_topic("t")]
        assert served.node.ports.disk.exists(folders[0])
        (gone,) = await delete(served, version, "t")
        assert (gone.name, gone.error_code) == ("t", 0)
        assert gone.topic_id == (topic_id if version >= 6 else NO_ID)
        assert served.node.hosted.image.topics == {}
        assert not served.node.hosted.of_topic("t")
        assert not served.node.ports.disk.exists(folders[0])


@with_broker()
async def test_a_name_is_free_again_and_its_records_are_gone(served: Served) -> None:
    first = await served.make_topic("t")
    await served.produce("t", 1000)
    await delete(served, 6, "t")
    second = await served.make_topic("t")
    assert first != second
    assert await served.produce("t", 1000) == 0


@with_broker()
async def test_by_id(served: Served) -> None:
    topic_id = Id(await served.make_topic("t"))
    unknown = Id(b"\x07" * 16)
    wanted = (TopicToDelete(topic_id=topic_id), TopicToDelete(topic_id=unknown))
    answer = await served.call(DeleteTopicsRequest(topics=wanted), 6)
    gone, missing = answer.topics
    assert (gone.name, gone.topic_id, gone.error_code) == ("t", topic_id, 0)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, unknown, Error.UNKNOWN_TOPIC_ID)


@with_broker()
async def test_what_names_no_topic_or_one_twice_is_refused(served: Served) -> None:
    topic_id = Id(await served.make_topic("t"))
    wanted = (
        TopicToDelete(),
        TopicToDelete(name="t", topic_id=topic_id),
        TopicToDelete(name="t"),
        TopicToDelete(topic_id=topic_id),
        TopicToDelete(name="t"),
        TopicToDelete(name="never"),
    )
    answer = await served.call(DeleteTopicsRequest(topics=wanted), 6)
    bad = Error.INVALID_REQUEST
    assert [one.error_code for one in answer.topics] == [bad, bad, 0, bad, bad, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert all(one.error_message for one in answer.topics if one.error_code)
    assert served.node.hosted.image.topics == {}


@with_broker(delete_topic_enable=False)
async def test_where_deleting_is_disabled(served: Served) -> None:
    await served.make_topic("t")
    for version in versions(20):
        (kept,) = await delete(served, version, "t")
        assert kept.error_code == (Error.TOPIC_DELETION_DISABLED if version >= 3 else Error.INVALID_REQUEST)
    assert "t" in served.node.hosted.image.topics
