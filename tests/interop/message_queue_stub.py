"""A stub of `message_queue.MessageQueue`, compiled by gRPC's own compiler from what is known of the service.

The .proto below is written down from the interface's facts, apart from the one that the door is made from. The stub is
the blocking one: a second event loop of gRPC in one process would not do.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import grpc

PROTO: Final = """
syntax = "proto3";
package message_queue;
service MessageQueue {
  rpc ProduceMessages(ProduceMessagesRequest) returns (ProduceMessagesResponse);
  rpc ConsumeMessages(ConsumeMessagesRequest) returns (ConsumeMessagesResponse);
  rpc GetMetadata(MetadataRequest) returns (MetadataResponse);
  rpc GetBrokerAddress(BrokerAddressRequest) returns (BrokerAddressResponse);
  rpc Shutdown(ShutdownRequest) returns (ShutdownResponse);
}
message Message {
  string key = 1; string value = 2; string topic = 3; int32 partition = 4; int64 offset = 5; int64 timestamp = 6;
  optional int64 size = 7;
}
message ProduceMessagesRequest { repeated Message messages = 1; string producer_id = 2; }
message ProduceMessagesResponse { bool success = 1; string error_message = 2; }
message ConsumeMessagesRequest {
  string group_id = 1; string topic = 2; int32 partition = 3; int64 start_offset = 4; int32 max_messages = 5;
}
message ConsumeMessagesResponse { repeated Message messages = 1; bool success = 2; string error_message = 3; }
message MetadataRequest { string topic = 1; }
message PartitionMetadata { int32 partition_id = 1; string broker_address = 2; }
message MetadataResponse { repeated PartitionMetadata partitions = 1; bool success = 2; string error_message = 3; }
message BrokerAddressRequest { string broker_id = 1; }
message BrokerAddressResponse { string broker_address = 1; bool success = 2; string error_message = 3; }
message ShutdownRequest { string broker_id = 1; }
message ShutdownResponse { bool success = 1; string error_message = 2; string broker_address = 3; }
"""
TIMEOUT_S: Final = 30.0


class Stubs:
    """The compiled modules, and a stub for each address."""

    def __init__(self, folder: Path) -> None:
        from grpc_tools import protoc

        (folder / "stub_of_message_queue.proto").write_text(PROTO)
        told = [f"--proto_path={folder}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
        assert protoc.main(["protoc", *told, "stub_of_message_queue.proto"]) == 0
        self.types: Any = _module(folder, "stub_of_message_queue_pb2")
        self._services: Any = _module(folder, "stub_of_message_queue_pb2_grpc")
        self._channels: dict[str, grpc.Channel] = {}

    def at(self, address: str) -> "Stub":
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address)
        return Stub(self.types, self._services.MessageQueueStub(self._channels[address]))

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()


class Stub:
    def __init__(self, types: Any, stub: Any) -> None:
        self._types = types
        self._stub = stub

    def metadata(self, topic: str) -> Any:
        return self._stub.GetMetadata(self._types.MetadataRequest(topic=topic), timeout=TIMEOUT_S)

    def produce(self, topic: str, partition: int, messages: list[tuple[str, str]]) -> Any:
        made = [self._types.Message(key=key, value=value, topic=topic, partition=partition) for key, value in messages]
        request = self._types.ProduceMessagesRequest(messages=made, producer_id="p")
        return self._stub.ProduceMessages(request, timeout=TIMEOUT_S)

    def consume(self, group: str, topic: str, partition: int, start: int, most: int) -> Any:
        request = self._types.ConsumeMessagesRequest(
            group_id=group, topic=topic, partition=partition, start_offset=start, max_messages=most
        )
        return self._stub.ConsumeMessages(request, timeout=TIMEOUT_S)

    def broker_address(self, broker: str) -> Any:
        return self._stub.GetBrokerAddress(self._types.BrokerAddressRequest(broker_id=broker), timeout=TIMEOUT_S)

    def shut_down(self, broker: str) -> Any:
        return self._stub.Shutdown(
            self._types.ShutdownRequest(broker_id=broker), timeout=TIMEOUT_S, wait_for_ready=True
        )


def _module(folder: Path, name: str) -> ModuleType:
    """A compiled module, under its own name: the one with the services imports the other by it."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
