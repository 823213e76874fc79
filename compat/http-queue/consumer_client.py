"""A consumer of an HTTP queue: copy this file into your project; it needs Python alone.

    consumer = MyConsumer(["T-1", "T-2"], "127.0.0.1:8001")
    message = consumer.Dequeue("T-1")    # MyConsumerError when there is no new message
    left = consumer.Size("T-1")

`broker` is one address or several ("127.0.0.1:8001,127.0.0.1:8002", or a list): any of them takes any request, and the
next one is tried when one does not answer. Every request for a message has a number, so a request that is repeated
gets the same message: none is lost with an answer, and none comes twice. A new consumer begins at the first message.
"""

import http.client
import json
import socket
import time
from urllib.parse import urlsplit

TIMEOUT_S = 30.0  # for one answer
RETRY_S = 60.0  # for a request, with all its repetitions
PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 1.0


class MyConsumerError(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.message = message


myConsumerError = MyConsumerError  # noqa: N816


class MyConsumer:
    def __init__(self, topics=(), broker="127.0.0.1:8001"):
        """Registers for each of these topics; RegisterConsumer does so for more."""
        self._addresses = _addresses(broker)
        self._connection = None
        self._ids = {}  # by topic: the consumer id, and the number of the next request
        for topic in [topics] if isinstance(topics, str) else topics:
            self.RegisterConsumer(topic)

    def RegisterConsumer(self, topic):  # noqa: N802
        """The consumer id for this topic, which must exist."""
        answer = self._ask("POST", "/consumer/register", {"topic": topic})
        self._ids[topic] = [answer["consumer_id"], 0]
        return answer["consumer_id"]

    def ListTopics(self):  # noqa: N802
        return self._ask("GET", "/topics", {})["topics"]

    def Dequeue(self, topic):  # noqa: N802
        """The next message, as text."""
        consumer_id, number = self._registered(topic)
        given = {"topic": topic, "consumer_id": consumer_id, "request_id": number}
        message = self._ask("GET", "/consumer/consume", given)["message"]
        self._ids[topic][1] += 1
        return message

    def Size(self, topic):  # noqa: N802
        """How many messages this consumer has not had."""
        consumer_id, _ = self._registered(topic)
        return self._ask("GET", "/size", {"topic": topic, "consumer_id": consumer_id})["size"]

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _registered(self, topic):
        if topic not in self._ids:
            raise MyConsumerError(f"not registered for topic {topic}: call RegisterConsumer first")
        return self._ids[topic]

    def _ask(self, method, path, given):
        """The answer of the first broker that has one; all brokers are asked in turn, again and again."""
        deadline = time.monotonic() + RETRY_S
        pause_s, why = PAUSE_MIN_S, ""
        while True:
            try:
                status, answer = self._once(method, path, given)
                if status == 200:
                    return answer
                why = answer.get("message", f"status {status}")
                if status < 500:
                    raise MyConsumerError(why)
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = f"{self._addresses[0]} does not answer: {error}"
            self.close()
            self._addresses.append(self._addresses.pop(0))
            if time.monotonic() + pause_s > deadline:
                raise MyConsumerError(f"no broker could do it within {RETRY_S:g} s: {why}")
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
