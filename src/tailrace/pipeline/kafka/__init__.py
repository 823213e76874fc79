"""A Kafka client for Spark tasks: one request after another, over blocking sockets.

A task is one thread that has nothing else to do while it waits, so there is no event loop here. Messages and codecs
come from `wire/`. Requests use the newest API versions that still identify topics by name rather than by id; Apache
Kafka supports these versions as well.
"""
