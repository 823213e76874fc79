"""The service `message_queue.MessageQueue`: `service` decides, `translation` makes it of protobuf's messages."""
