"""Kafka's protocol as a Spark task needs it: one question after another, over blocking sockets.

A task is one thread that has nothing else to do while it waits, so there is no event loop here; messages and codecs are
those of `wire/`. Topics are named by name, in the newest versions that still do so, which Apache Kafka speaks as well.
"""
