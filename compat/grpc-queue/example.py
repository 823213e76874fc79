"""`python3 example.py 127.0.0.1:50051`: put ten messages into a topic and read them, with stubs of ./gradlew build."""

import sys
import time
import zlib
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).parent / "build" / "stubs"))
import message_queue_pb2 as types
import message_queue_pb2_grpc as services

TOPIC = "my-topic"


def stub(address: str) -> services.MessageQueueStub:
    return services.MessageQueueStub(grpc.insecure_channel(address))


def leaders(address: str) -> dict[int, str]:
    """Where each partition is served. The topic is created if it is not there."""
    found = stub(address).GetMetadata(types.MetadataRequest(topic=TOPIC))
    if not found.success:
        sys.exit(found.error_message)
    return {one.partition_id: one.broker_address for one in found.partitions}


def main(address: str) -> None:
    partitions = leaders(address)
    for number in range(10):
        key = f"key-{number}"
        partition = zlib.crc32(key.encode()) % len(partitions)
        message = types.Message(
            key=key, value=f"message {number}", topic=TOPIC, partition=partition, timestamp=int(time.time())
        )
        request = types.ProduceMessagesRequest(messages=[message], producer_id="example")
        answer = stub(partitions[partition]).ProduceMessages(request)
        if not answer.success:  # after a change of leaders: ask for metadata again
            sys.exit(answer.error_message)
    for partition, broker in sorted(partitions.items()):
        request = types.ConsumeMessagesRequest(
            group_id="example", topic=TOPIC, partition=partition, start_offset=-1, max_messages=100
        )
        for message in stub(broker).ConsumeMessages(request).messages:
            print(partition, message.offset, message.key, message.value)


if __name__ == "__main__":
    main(sys.argv[1])
