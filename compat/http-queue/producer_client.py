"""A producer of an HTTP queue: copy this file into your project; it needs Python alone.

    producer = MyProducer(["T-1", "T-2"], "127.0.0.1:8001")
    producer.Enqueue("T-1", "hello")

`broker` is one address or several ("127.0.0.1:8001,127.0.0.1:8002", or a list): any of them takes any request, and the
next one is tried when one does not answer. Every message has a number, so it is written once, however often the
request has to be repeated. MyProducerError says why something failed; with `may_be_sent` nobody knows whether the
message was written.
"""

import http.client
import json
import socket
import time
from urllib.parse import urlsplit

TIMEOUT_S = 30.0  # for one answer
RETRY_S = 60.0  # for a request, with all its repetitions
PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 1.0


class MyProducerError(Exception):
    def __init__(self, message, may_be_sent=False):
        super().__init__(message)
        self.message = message
        self.may_be_sent = may_be_sent


myProducerError = MyProducerError  # noqa: N816


class MyProducer:
    def __init__(self, topics=(), broker="127.0.0.1:8001"):
        """Registers for each of these topics; RegisterProducer does so for more."""
        self._addresses = _addresses(broker)
        self._connection = None
        self._ids = {}  # by topic: the producer id, and the number of the next message
        for topic in [topics] if isinstance(topics, str) else topics:
            self.RegisterProducer(topic)

    def RegisterProducer(self, topic):  # noqa: N802
        """The producer id for this topic, which is created if there is none."""
        answer = self._ask("POST", "/producer/register", {"topic": topic})
        self._ids[topic] = [answer["producer_id"], 0]
        return answer["producer_id"]

    def ListTopics(self):  # noqa: N802
        return self._ask("GET", "/topics", {})["topics"]

    def CreateTopic(self, topic, partitions=1):  # noqa: N802
        self._ask("POST", "/topics", {"topic_name": topic, "partitions": partitions})
        return 0

    def Enqueue(self, topic, message):  # noqa: N802
        """Returns 0 when the message is durable."""
        if topic not in self._ids:
            self.RegisterProducer(topic)
        producer_id, number = self._ids[topic]
        given = {"topic": topic, "producer_id": producer_id, "message": message, "request_id": number}
        try:
            self._ask("POST", "/producer/produce", given)
        except MyProducerError as error:
            if error.may_be_sent:
                del self._ids[topic]  # its number may be used: go on as a new producer
            raise
        self._ids[topic][1] += 1
        return 0

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method, path, given):
        """The answer of the first broker that has one; all brokers are asked in turn, again and again."""
        deadline = time.monotonic() + RETRY_S
        pause_s, why, sent = PAUSE_MIN_S, "", False
        while True:
            try:
                status, answer = self._once(method, path, given)
                if status == 200:
                    return answer
                why = answer.get("message", f"status {status}")
                if status < 500:
                    raise MyProducerError(why, may_be_sent=sent and path == "/producer/produce")
                sent = True
            except (OSError, http.client.HTTPException, ValueError) as error:
                why, sent = f"{self._addresses[0]} does not answer: {error}", True
            self.close()
            self._addresses.append(self._addresses.pop(0))
            if time.monotonic() + pause_s > deadline:
                raise MyProducerError(f"no broker could do it within {RETRY_S:g} s: {why}", may_be_sent=sent)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _once(self, method, path, given):
        if self._connection is None:
            kind, host, port = self._addresses[0]
            self._connection = kind(host, port, timeout=TIMEOUT_S)
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = json.dumps(given).encode()
        self._connection.request(method, path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def _addresses(broker):
    found = []
    for one in broker.split(",") if isinstance(broker, str) else broker:
        parts = urlsplit(one.strip() if "://" in one else f"//{one.strip()}")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        found.append((kind, parts.hostname or "127.0.0.1", parts.port or 8001))
    return found
