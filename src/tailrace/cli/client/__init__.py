"""How commands reach brokers: confluent-kafka, its configuration file, and requests of our own."""
