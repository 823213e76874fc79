"""Clients of the commands: confluent-kafka, its configuration file, and requests over our own sockets."""
