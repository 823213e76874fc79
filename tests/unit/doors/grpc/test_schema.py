"""The descriptor set is what the .proto files say, and its messages are what their clients know."""

from pathlib import Path

from google.protobuf import descriptor_pb2

from checks.compile_protos import DESCRIPTORS, compile_protos
from tailrace.doors.grpc.schema import HEALTH, MESSAGE_QUEUE, REFLECTION, V1, load_schema

# Field numbers of the service that other programs' stubs were compiled from: number, name, type.
FACTS = {
    "Message": "1 key string, 2 value string, 3 topic string, 4 partition int32, 5 offset int64, 6 timestamp int64, "
    "7 size int64",
    "ProduceMessagesRequest": "1 messages Message*, 2 producer_id string",
    "ProduceMessagesResponse": "1 success bool, 2 error_message string",
    "ConsumeMessagesRequest": "1 group_id string, 2 topic string, 3 partition int32, 4 start_offset int64, "
    "5 max_messages int32",
    "ConsumeMessagesResponse": "1 messages Message*, 2 success bool, 3 error_message string",
    "MetadataRequest": "1 topic string",
    "PartitionMetadata": "1 partition_id int32, 2 broker_address string",
    "MetadataResponse": "1 partitions PartitionMetadata*, 2 success bool, 3 error_message string",
    "BrokerAddressRequest": "1 broker_id string",
    "BrokerAddressResponse": "1 broker_address string, 2 success bool, 3 error_message string",
    "ShutdownRequest": "1 broker_id string",
    "ShutdownResponse": "1 success bool, 2 error_message string, 3 broker_address string",
}
TYPES = {3: "int64", 5: "int32", 8: "bool", 9: "string"}
MESSAGE = 11


def test_the_descriptor_set_is_up_to_date(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.binpb"
    assert compile_protos(fresh) == 0
    said = descriptor_pb2.FileDescriptorSet.FromString(fresh.read_bytes())
    shipped = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())
    ours = {file.name: file for file in said.file if not file.name.startswith("google/protobuf/")}
    assert {name: ours[name] for name in ours} == {
        file.name: file for file in shipped.file if not file.name.startswith("google/protobuf/")
    }, "run `python -m checks.compile_protos`"


def test_the_message_queue_has_the_fields_that_its_stubs_know() -> None:
    queue = load_schema().queue
    for name, fields in FACTS.items():
        descriptor = getattr(queue, name).DESCRIPTOR
        shown = []
        for field in descriptor.fields:
            kind = field.message_type.name + "*" if field.type == MESSAGE else TYPES[field.type]
            shown.append(f"{field.number} {field.name} {kind}")
        assert ", ".join(shown) == fields, name
    assert queue.Message.DESCRIPTOR.fields_by_name["size"].has_presence


def test_every_service_has_its_methods() -> None:
    schema = load_schema()
    found = {name: [method.name for method in schema.service(name).methods] for name in (MESSAGE_QUEUE, HEALTH)}
    assert found == {
        MESSAGE_QUEUE: ["ProduceMessages", "ConsumeMessages", "GetMetadata", "GetBrokerAddress", "Shutdown"],
        HEALTH: ["Check", "List", "Watch"],
    }
    for name in [REFLECTION, *(f"tailrace.v1.{one}" for one in V1)]:
        assert schema.service(name).methods


def test_two_schemas_do_not_know_of_each_other() -> None:
    one, other = load_schema(), load_schema()
    assert one.v1.Record is not other.v1.Record
    assert other.v1.Record.FromString(one.v1.Record(topic="orders", offset=3).SerializeToString()).offset == 3
