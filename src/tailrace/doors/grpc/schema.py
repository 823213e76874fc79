"""Message classes and services, made from the descriptor set that is shipped with the package.

    schema = load_schema()
    schema.v1.ProduceRequest(topic="orders")

Protobuf's own rules apply to what clients send: fields that are unknown are ignored, text must be UTF-8.
"""

from importlib import resources
from types import SimpleNamespace
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MESSAGE_QUEUE: Final = "message_queue.MessageQueue"
HEALTH: Final = "grpc.health.v1.Health"
REFLECTION: Final = "grpc.reflection.v1.ServerReflection"
V1: Final = ("Producer", "Consumer", "Queue", "Topics", "Groups", "Cluster")


class Schema:
    def __init__(self, descriptors: bytes) -> None:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        self.pool = descriptor_pool.DescriptorPool()
        for file in found.file:
            self.pool.Add(file)  # type: ignore[no-untyped-call,unused-ignore]
        self._files = [file.name for file in found.file]
        self.queue = self._package("message_queue")
        self.v1 = self._package("tailrace.v1")
        self.health = self._package("grpc.health.v1")
        self.reflection = self._package("grpc.reflection.v1")
        self.rpc = self._package("google.rpc")
        self.protobuf = self._package("google.protobuf")

    def _package(self, package: str) -> Any:
        """The message classes and enums of a package by name; nested ones are attributes of the outer class."""
        found: dict[str, Any] = {}
        for name in self._files:
            file = self.pool.FindFileByName(name)
            if file.package == package:
                for message in file.message_types_by_name.values():
                    found[message.name] = message_factory.GetMessageClass(message)
                for enum in file.enum_types_by_name.values():
                    found[enum.name] = SimpleNamespace(**{one.name: one.number for one in enum.values})
        return SimpleNamespace(**found)

    def message_class(self, descriptor: Any) -> Any:
        return message_factory.GetMessageClass(descriptor)

    def service(self, name: str) -> Any:
        """The descriptor of a service, by its full name."""
        return self.pool.FindServiceByName(name)  # type: ignore[no-untyped-call,unused-ignore]


def load_schema() -> Schema:
    return Schema(resources.files(__package__).joinpath("descriptors.binpb").read_bytes())
