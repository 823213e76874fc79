"""The service `message_queue.MessageQueue` on one broker: texts, offsets, holes, and who may stop it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tailrace.client.admin import topic_settings
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.doors.grpc.calls import Call
from tailrace.doors.grpc.message_queue.service import MessageQueue
from tailrace.doors.grpc.message_queue.translation import message_queue
from tailrace.doors.upstream import Upstream
from tailrace.model.addresses import Address
from tailrace.model.caller import Caller
from tailrace.model.ids import BrokerId
from tests.unit.doors.grpc.served import LOCAL, Served, serving
from tests.unit.doors.kafka.served import given


class Stub:
    def __init__(self, served: Served) -> None:
        self.types = served.schema.queue
        self._service = message_queue(MessageQueue(served.upstream), served.schema)

    async def call(self, method: str, request: Any, call: Call = LOCAL) -> Any:
        return await self._service.unary[method](request, call)

    async def metadata(self, topic: str) -> Any:
        return await self.call("GetMetadata", self.types.MetadataRequest(topic=topic))

    async def produce(self, *messages: Any) -> Any:
        return await self.call("ProduceMessages", self.types.ProduceMessagesRequest(messages=messages))

    async def consume(self, start: int, most: int, topic: str = "orders", partition: int = 0, group: str = "g") -> Any:
        request = self.types.ConsumeMessagesRequest(
            group_id=group, topic=topic, partition=partition, start_offset=start, max_messages=most
        )
        return await self.call("ConsumeMessages", request)

    def message(self, value: str, **fields: Any) -> Any:
        return self.types.Message(**{"value": value, "topic": "orders", **fields})


def values(response: Any) -> Sequence[str]:
    assert response.success, response.error_message
    return [one.value for one in response.messages]


def with_door(served: Served, **doors: Address) -> None:
    """Let the upstream know gRPC doors, by broker: there is none in this process."""
    found = {BrokerId(int(name.removeprefix("broker"))): address for name, address in doors.items()}

    async def endpoints(_: str) -> dict[BrokerId, Address]:
        return found

    served.upstream._endpoints = endpoints


@given(serving)
async def test_metadata_creates_a_topic_of_three_partitions_that_keeps_half_an_hour(served: Served) -> None:
    with_door(served, broker1=Address("127.0.0.1", 7001))
    stub = Stub(served)
    found = await stub.metadata("orders")
    assert found.success
    assert [(one.partition_id, one.broker_address) for one in found.partitions] == [
        (number, "127.0.0.1:7001") for number in range(3)
    ]
    settings = {one.name: one.value for one in await topic_settings(served.upstream.cluster, "orders")}
    assert settings["retention.ms"] == "1800000"
    assert (await stub.metadata("orders")) == found  # which is there now


@given(serving)
async def test_a_topic_that_cannot_be_is_told_in_the_response(served: Served) -> None:
    found = await Stub(served).metadata("no such/topic")
    assert not found.success
    assert "no such/topic" in found.error_message


@given(serving)
async def test_messages_come_out_as_they_went_in(served: Served) -> None:
    await served.make_topic("orders", 2)
    stub = Stub(served)
    sent = [
        stub.message("zwei Kaffee ☕", key="Tisch 4", timestamp=1_700_000_000),
        stub.message("", key="", timestamp=1_700_000_001),
    ]
    assert (await stub.produce(*sent)).success
    found = await stub.consume(0, 10)
    expected = [
        stub.message("zwei Kaffee ☕", key="Tisch 4", timestamp=1_700_000_000, offset=0, size=15),
        stub.message("", timestamp=1_700_000_001, offset=1, size=0),
    ]
    assert list(found.messages) == expected
    assert values(await stub.consume(1, 10)) == [""]


@given(serving)
async def test_consuming_stores_the_offset_after_the_last_message(served: Served) -> None:
    await served.make_topic("orders")
    stub = Stub(served)
    await stub.produce(*(stub.message(str(number)) for number in range(5)))
    assert values(await stub.consume(-1, 2)) == ["0", "1"]
    assert values(await stub.consume(-1, 2)) == ["2", "3"]
    assert values(await stub.consume(0, 1)) == ["0"]  # a start that is given wins, and moves the group
    assert values(await stub.consume(-1, 9)) == ["1", "2", "3", "4"]
    assert values(await stub.consume(5, 9)) == []


@given(serving)
async def test_no_messages_wanted_seeks(served: Served) -> None:
    await served.make_topic("orders")
    stub = Stub(served)
    await stub.produce(*(stub.message(str(number)) for number in range(5)))
    assert values(await stub.consume(3, 0)) == []
    assert values(await stub.consume(-1, 9)) == ["3", "4"]


@given(serving)
async def test_offsets_without_messages_are_passed_over(served: Served) -> None:
    await served.make_topic("orders")
    stub, cluster = Stub(served), served.upstream.cluster
    for number in range(2):  # offsets 0 and 2; 1 and 3 are markers
        async with Producer(cluster, ProducerOptions(transactional_id=f"t{number}")) as producer:
            await producer.begin()
            await producer.send("orders", str(number).encode())
            await producer.commit()
    assert values(await stub.consume(1, 1)) == ["1"]  # starts inside a hole
    assert values(await stub.consume(-1, 9)) == []
    await stub.produce(stub.message("2"))
    found = await stub.consume(-1, 9)
    assert [(one.offset, one.value) for one in found.messages] == [(4, "2")]


@given(serving)
async def test_what_is_missing_is_named(served: Served) -> None:
    await served.make_topic("orders", 2)
    stub = Stub(served)
    text = "Partition not found for topic {} and partition {}"
    assert (await stub.produce(stub.message("x", partition=2))).error_message == text.format("orders", 2)
    assert (await stub.produce(stub.message("x", partition=-1))).error_message == text.format("orders", -1)
    assert (await stub.consume(0, 1, topic="none")).error_message == text.format("none", 0)
    assert "empty" in (await stub.consume(0, 1, group="")).error_message
    assert "-3" in (await stub.consume(0, -3)).error_message
    beyond = await stub.consume(17, 1)
    assert not beyond.success
    assert "17" in beyond.error_message


@given(serving)
async def test_a_request_with_a_partition_of_another_broker_writes_nothing(served: Served) -> None:
    await served.make_topic("orders", 2)
    stub = Stub(served)
    refused = await stub.produce(stub.message("x"), stub.message("y", partition=2))
    assert not refused.success
    assert values(await stub.consume(0, 9)) == []


@given(serving)
async def test_a_time_that_is_none_is_refused(served: Served) -> None:
    await served.make_topic("orders")
    stub = Stub(served)
    for timestamp in (-1, 2**63 - 1):
        assert str(timestamp) in (await stub.produce(stub.message("x", timestamp=timestamp))).error_message


@given(serving)
async def test_brokers_are_found_by_their_ids(served: Served) -> None:
    with_door(served, broker1=Address("127.0.0.1", 7001), broker2=Address("127.0.0.1", 7002))
    stub = Stub(served)

    async def address(broker: str) -> Any:
        return await stub.call("GetBrokerAddress", stub.types.BrokerAddressRequest(broker_id=broker))

    assert (await address("2")).broker_address == "127.0.0.1:7002"
    for broker in ("3", "", "two", "-1", "²", "9" * 50):
        assert (await address(broker)).error_message == f"Broker {broker} not found in the cluster."


@given(serving)
async def test_only_a_local_caller_stops_the_broker_that_it_names(served: Served) -> None:
    with_door(served, broker1=Address("127.0.0.1", 7001), broker2=Address("127.0.0.1", 7002))
    stub = Stub(served)

    async def shut_down(broker: str, host: str = "127.0.0.1") -> Any:
        call = replace(LOCAL, caller=Caller(host=host))
        return await stub.call("Shutdown", stub.types.ShutdownRequest(broker_id=broker), call)

    other = await shut_down("2")
    assert (other.error_message, other.broker_address) == ("Broker ID does not match", "127.0.0.1:7002")
    assert "not found" in (await shut_down("9")).error_message
    for host in ("10.0.0.1", ""):
        assert "own machine" in (await shut_down("1", host)).error_message
    assert not served.stops
    assert (await shut_down("1")).success
    assert served.stops == ["stop"]


def gateway(upstream: Upstream) -> Upstream:
    """The same cluster as a gateway sees it."""

    async def endpoints(_: str) -> dict[BrokerId, Address]:
        return {BrokerId(0): Address("127.0.0.1", 7999)}

    return Upstream(upstream._driver, upstream._bootstrap, endpoints)


@given(serving)
async def test_a_gateway_serves_every_partition_and_stops_nothing(served: Served) -> None:
    broker = served.upstream
    served.upstream = gateway(broker)
    stub = Stub(served)
    found = await stub.metadata("orders")
    assert {one.broker_address for one in found.partitions} == {"127.0.0.1:7999"}
    assert (await stub.produce(stub.message("x", partition=2))).success
    assert values(await stub.consume(0, 9, partition=2)) == ["x"]
    refused = await stub.call("Shutdown", stub.types.ShutdownRequest(broker_id="1"))
    assert "gateway" in refused.error_message
    for name, address in (("1", "127.0.0.1:7999"), ("2", "")):
        request = stub.types.BrokerAddressRequest(broker_id=name)
        assert (await stub.call("GetBrokerAddress", request)).broker_address == address
    await served.upstream.close()
    served.upstream = broker
