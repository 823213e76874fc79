"""`tailrace gateway`: the client doors in a process of their own, in front of any Kafka cluster."""
