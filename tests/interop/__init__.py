"""Other people's clients, unchanged, against a broker: does my client simply work?

Clients from PyPI and Debian (confluent-kafka, aiokafka, kafka-python, kcat) run through one list of features, and so do
clients in other languages (Kafka's own for Java, franz-go, kafkajs), which are fetched and built: `make interop` only.
A driver in `drivers/` puts each client's own calls behind the words of `client.py`, so that a feature is written once
and tried with every client that has it; the driver is also the example of how that client is used. What came out is
written by the run itself into `LEDGER.md`, a list that only grows (`ledger.py`).

`test_three_brokers.py` runs the main flows again on a cluster of ours, with what only a cluster can show: brokers die.

`programs/` holds whole programs of other people: Kafka's command-line tools, Kafka Streams, workers that are killed.

Most readers are given their partition and first offset, and need no coordinator. Members of groups (`test_groups*.py`)
are processes of their own (`members/`), so that they can be killed; so are members of share groups
(`test_share_members*.py`, `share_member.py`).

The same tests run against any broker: `TAILRACE_INTEROP_BOOTSTRAP=127.0.0.1:9092 pytest tests/interop`. Every one
of them that needs no cluster passes on Apache Kafka 4.3: that is what makes a failure here ours.
"""
