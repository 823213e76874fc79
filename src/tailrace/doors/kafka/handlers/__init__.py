"""The handlers of the Kafka APIs, one file per API; the module docstring says what the API means."""
