"""The queue API: topics, registered producers and consumers, one message a request.

Every answer is a JSON object with `status`: "success" with 200, "failure" with 400 and a message; a failure that may be
over soon has 503 and Retry-After. A message is acknowledged when it is durable on a majority of its replicas, and an
answer with a message leaves when it is durable that the consumer has it: it is never given out again. If that cannot be
known, the answer is a failure to be repeated, never the message.

With `request_id` a request can be repeated at any broker with the same outcome: numbers that count up by one, each used
for one message (`choices` for consumers; for producers the sequence numbers of their partition). Without it, an answer
that is lost on the wire is a message lost to that consumer, or one that may be there twice.

A consumer is a share group of its own, which begins at the first message that is there.
"""

import base64
import binascii
from typing import Any, Final

from tailrace.client.admin import list_topics
from tailrace.client.faults import ClientError, Refused
from tailrace.client.registrations import Kind, Registration
from tailrace.client.sequenced import SEQUENCE_MAX, append_sequenced
from tailrace.client.topics import make_topic, partitions_of
from tailrace.doors.http.errors import HttpError, Problem, problem_of
from tailrace.doors.http.messages import Request, Response, Stream, json_response
from tailrace.doors.http.queue_api.choices import Choices
from tailrace.doors.http.queue_api.health import Health
from tailrace.doors.http.queue_api.parameters import Parameters
from tailrace.doors.http.queue_api.registry import Registry
from tailrace.doors.http.routes import Answer, Api, Handler, Parameter, Route
from tailrace.doors.upstream import ClientHost
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.limits import PARTITIONS_PER_TOPIC_MAX
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error

TAG: Final = "queue"
LISTED_MAX: Final = 1_000  # producers, and consumers, in a report
INTERNAL: Final = "__"  # how the names of topics begin that are none of the users'


class QueueApi:
    def __init__(self, host: ClientHost) -> None:
        self._upstream = host.upstream
        self._registry = Registry(host.upstream, host.ports)
        self._choices = Choices(host.upstream)
        self.health = Health(host.upstream)
        self._turns: dict[str, int] = {}  # by topic with several partitions, where the next message goes

    def api(self) -> Api:
        return Api(prefix="", routes=self._routes(), render=render)

    def _routes(self) -> list[Route]:
        return [
            _route("GET", "/topics", self.topics, "List the topics."),
            _route("POST", "/topics", self.create_topic, "Create a topic.", "topic_name"),
            _route("GET", "/topics/partition", self.partitions, "List the partitions of a topic.", "topic_name"),
            _route("POST", "/producer/register", self.register_producer, "Register a producer.", "topic"),
            _route("POST", "/producer/produce", self.produce, "Send a message.", "topic", "producer_id", "message"),
            _route("POST", "/consumer/register", self.register_consumer, "Register a consumer.", "topic"),
            _route("GET", "/consumer/consume", self.consume, "Take the next message.", "topic", "consumer_id"),
            _route("GET", "/health", self.report_health, "Show when brokers, producers and consumers were last seen."),
            _route("GET", "/size", self.size, "Count the messages to come.", "topic", "consumer_id"),
        ]

    # Topics

    async def topics(self, request: Request) -> Response:
        found = await list_topics(self._upstream.cluster)
        names = sorted(one.name for one in found if one.name and not one.is_internal and _is_users(one.name))
        if not names:
            raise HttpError(400, "No topics found")
        return _success(topics=names)

    async def create_topic(self, request: Request) -> Response:
        given = Parameters(request)
        name = _users_name(given.text("topic_name", "topic"))
        count = given.optional_integer("partitions", 1, PARTITIONS_PER_TOPIC_MAX) or 1
        if not await make_topic(self._upstream.cluster, name, count):
            raise HttpError(400, "Topic already exists.")
        return _success("Topic created.")

    async def partitions(self, request: Request) -> Response:
        count = await self._count(_users_name(Parameters(request).text("topic_name", "topic")))
        return _success(partitions=list(range(count)))

    async def _count(self, topic: str) -> int:
        count = await partitions_of(self._upstream.cluster, topic)
        if count is None:
            raise HttpError(400, "Topic doesn't exist.")
        return count

    # Producers

    async def register_producer(self, request: Request) -> Response:
        topic = _users_name(Parameters(request).text("topic", "topic_name"))
        cluster = self._upstream.cluster
        if await partitions_of(cluster, topic) is None:
            await make_topic(cluster, topic, 1)
        return _success(producer_id=(await self._register("producer", topic, request)).id)

    async def _register(self, kind: Kind, topic: str, request: Request) -> Registration:
        found = await self._registry.register(kind, topic, await self._count(topic), request.caller)
        self.health.saw(kind, found.id, topic)
        return found

    async def produce(self, request: Request) -> Response:
        given = Parameters(request)
        number, topic = given.integer("producer_id"), given.text("topic", "topic_name")
        payload = _payload(given)
        request_id = given.optional_integer("request_id")
        partition = given.optional_integer("partition", 0, PARTITIONS_PER_TOPIC_MAX)
        producer = await self._registry.find("producer", number)
        if producer is None:
            raise HttpError(400, "Producer not found.")
        if producer.topic != topic:
            raise HttpError(400, f"{number} did not register for topic - {topic}")
        self.health.saw("producer", number, topic)
        if partition is not None:
            await self._check_partition(topic, partition)
        if request_id is None:
            await self._send(request, topic, payload, partition)
        else:
            await self._send_numbered(producer, request_id, payload, partition)
        return _success()

    async def _check_partition(self, topic: str, partition: int) -> None:
        if partition >= await self._count(topic):
            raise HttpError(400, f"Partition {partition} not found for - {topic}")

    async def _send(self, request: Request, topic: str, payload: bytes, partition: int | None) -> None:
        if partition is None:
            count = await self._count(topic)
            partition = 0
            if count > 1:
                partition = self._turns.get(topic, -1) + 1
                partition = self._turns[topic] = partition if partition < count else 0
        with self._upstream.producers.of(request.caller.principal) as producer:
            await (await producer.send(topic, payload, partition=partition))

    async def _send_numbered(self, producer: Registration, number: int, payload: bytes, partition: int | None) -> None:
        """Numbers count the messages of the producer, which go to its partitions in turn; with a given partition they
        count its messages to that partition."""
        if partition is None:
            partition, sequence = number % producer.partitions, number // producer.partitions
        else:
            sequence = number
        if sequence > SEQUENCE_MAX:
            raise HttpError(400, f"request_id {number} is too large: register a new producer")
        cluster = self._upstream.cluster
        record = NewRecord(payload, timestamp=cluster.driver.wall_ms())
        place = PartitionName(producer.topic, partition)
        try:
            await append_sequenced(cluster, place, record, producer.sequencer, sequence)
        except Refused as refused:
            if refused.error is not Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            raise HttpError(
                400, f"request_id {number} of producer {producer.id} does not follow the last one"
            ) from None

    # Consumers

    async def register_consumer(self, request: Request) -> Response:
        topic = _users_name(Parameters(request).text("topic", "topic_name"))
        return _success(consumer_id=(await self._register("consumer", topic, request)).id)

    async def consume(self, request: Request) -> Response:
        given = Parameters(request)
        consumer = await self._consumer(given)
        request_id = given.optional_integer("request_id", 0, SEQUENCE_MAX)
        partition = given.optional_integer("partition", 0, PARTITIONS_PER_TOPIC_MAX)
        topic = consumer.topic
        if partition is not None:
            await self._check_partition(topic, partition)
        if request_id is None:
            payload = await self._take(consumer, partition)
        else:
            payload = await self._choices.take(consumer, request_id, partition)
        if payload is None:
            raise HttpError(400, f"No new message is published to {topic}.", "no_message")
        return _message(payload)

    async def _take(self, consumer: Registration, partition: int | None) -> bytes | None:
        taker = self._upstream.takers.of(consumer.group, consumer.topic)
        message = await taker.take(partition)
        if message is None:
            return None
        await taker.accept(message)
        return message.value or b""

    async def size(self, request: Request) -> Response:
        consumer = await self._consumer(Parameters(request))
        return _success(size=await self._upstream.takers.of(consumer.group, consumer.topic).unread())

    async def report_health(self, request: Request) -> Response:
        limit = Parameters(request).optional_integer("limit", 1, LISTED_MAX) or LISTED_MAX
        return _success(**await self.health.report(limit))

    async def _consumer(self, given: Parameters) -> Registration:
        number, topic = given.integer("consumer_id"), given.text("topic", "topic_name")
        consumer = await self._registry.find("consumer", number)
        if consumer is None:
            raise HttpError(400, "Consumer not found.")
        if consumer.topic != topic:
            raise HttpError(400, f"{number} did not subscribe to topic - {topic}")
        self.health.saw("consumer", number, topic)
        return consumer


def _payload(given: Parameters) -> bytes:
    encoded = given.optional_text("message_base64")
    if encoded is None:
        try:
            return given.text("message").encode()
        except UnicodeEncodeError:
            raise HttpError(400, "parameter message has characters that UTF-8 cannot carry") from None
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise HttpError(400, "parameter message_base64 is not base64") from None


def _message(payload: bytes) -> Response:
    """A payload that is no text is given in base64, too: `message` alone would lose bytes."""
    try:
        return _success(payload.decode())
    except UnicodeDecodeError:
        encoded = base64.b64encode(payload).decode()
        return _success(payload.decode(errors="replace"), message_base64=encoded)


def _success(message: str = "", **more: Any) -> Response:
    return json_response({"status": "success", "message": message, **more})


def render(problem: Problem) -> Response:
    return json_response({"status": "failure", "message": problem.detail}, status=problem.status)


def _failing_with_400(handler: Handler) -> Handler:
    """The handler, whose failures are 400 whatever they are, unless they are the server's and may pass."""

    async def handle(request: Request) -> Response | Stream:
        try:
            return await handler(request)
        except (HttpError, Fault, ClientError) as error:
            problem = problem_of(error)
            if problem.status >= 500:
                raise
            raise HttpError(400, problem.detail, problem.kind) from None

    return handle


def _is_users(name: str) -> bool:
    return not name.startswith(INTERNAL)


def _users_name(name: str) -> str:
    if not _is_users(name):
        raise HttpError(400, f"topics whose names begin with {INTERNAL} are internal")
    return name


def _route(method: str, path: str, handler: Any, help: str, *names: str) -> Route:
    parameters = tuple(
        Parameter(
            name=name,
            help="",
            schema={"type": "integer" if name.endswith("_id") else "string"},
            where="query",
            required=True,
        )
        for name in names
    )
    answers = {200: Answer(help="status is success"), 400: Answer(help="status is failure; message says why")}
    name = f"queue{path.title().replace('/', '')}{method.title()}"
    return Route(
        method=method,
        path=path,
        handler=_failing_with_400(handler),
        name=name,
        help=help,
        parameters=parameters,
        answers=answers,
        tag=TAG,
    )
