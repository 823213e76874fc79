"""Settings of Kafka's consumer and producer, given as `kafka.*` options: honoured, accepted without effect, or refused.

A job may bring any tuning settings. A setting that only tunes Kafka's Java client is accepted silently. A setting that
would change the records, or who is trusted, is refused with a reason, because nobody would notice if it were ignored.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

KAFKA_PREFIX: Final = "kafka."
BROKERS_NAME: Final = "kafka.bootstrap.servers"
HONOURED: Final = (
    BROKERS_NAME, "kafka.group.id", "kafka.isolation.level", "kafka.max.partition.fetch.bytes",
    "kafka.compression.type", "kafka.batch.size", "kafka.transaction.timeout.ms",
)  # fmt: skip
# Grouped by what the settings control; here, Spark or Tailrace decides it.
WITHOUT_EFFECT: Final[Mapping[str, tuple[str, ...]]] = {
    "how long to ask, and how often": (
        "request.timeout.ms", "default.api.timeout.ms", "delivery.timeout.ms", "max.block.ms", "retries",
        "retry.backoff.ms", "retry.backoff.max.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
    ),
    "connections": (
        "client.id", "client.rack", "client.dns.lookup", "bootstrap.resolve.timeout.ms", "connections.max.idle.ms",
        "receive.buffer.bytes", "send.buffer.bytes", "socket.connection.setup.timeout.ms",
        "socket.connection.setup.timeout.max.ms", "metadata.max.age.ms", "metadata.max.idle.ms",
        "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    ),
    "how a consumer fetches": (
        "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.poll.records", "check.crcs",
        "allow.auto.create.topics",
    ),
    "a group's member": (
        "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "group.instance.id", "group.protocol",
        "auto.commit.interval.ms",
    ),
    "how a producer sends": (
        "acks", "enable.idempotence", "linger.ms", "buffer.memory", "max.request.size",
        "max.in.flight.requests.per.connection", "compression.gzip.level", "compression.lz4.level",
        "compression.zstd.level", "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
    ),
    "what a client reports about itself": (
        "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "enable.metrics.push", "auto.include.jmx.reporter",
    ),
    "TLS and logins in Java": (
        "ssl.keymanager.algorithm", "ssl.secure.random.implementation", "sasl.kerberos.service.name",
        "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
    ),
}  # fmt: skip
IGNORED: Final = tuple(f"{KAFKA_PREFIX}{name}" for names in WITHOUT_EFFECT.values() for name in names)


class Refusal(NamedTuple):
    why: str
    harmless: str = ""  # the value that matches what is done anyway; empty: no such value


_NO_CLASSES: Final = "Java classes cannot run here"
# A name that ends with a dot stands for all names with that prefix.
REFUSED: Final[Mapping[str, Refusal]] = {
    "kafka.auto.offset.reset": Refusal("set startingOffsets instead"),
    "kafka.enable.auto.commit": Refusal("Spark's checkpoint has the progress of a query", "false"),
    "kafka.exclude.internal.topics": Refusal("subscribePattern never means the brokers' own topics", "true"),
    "kafka.key.deserializer": Refusal("keys are bytes: convert them in the DataFrame"),
    "kafka.value.deserializer": Refusal("values are bytes: convert them in the DataFrame"),
    "kafka.key.serializer": Refusal("keys are bytes or text: convert them in the DataFrame"),
    "kafka.value.serializer": Refusal("values are bytes or text: convert them in the DataFrame"),
    "kafka.interceptor.classes": Refusal(f"{_NO_CLASSES}, and they could change records"),
    "kafka.partition.assignment.strategy": Refusal("Spark assigns the partitions to its tasks"),
    "kafka.group.remote.assignor": Refusal("Spark assigns the partitions to its tasks"),
    "kafka.partitioner.class": Refusal(f"{_NO_CLASSES}; a column partition says where a row goes"),
    "kafka.partitioner.ignore.keys": Refusal("a row goes where its key belongs, or its column partition says", "false"),
    "kafka.transactional.id": Refusal("exactlyOnce with a sinkId writes in transactions"),
    "kafka.transaction.two.phase.commit.enable": Refusal("exactlyOnce with a sinkId writes in transactions", "false"),
    "kafka.config.providers": Refusal(f"{_NO_CLASSES}: give the values themselves"),
    "kafka.security.providers": Refusal(_NO_CLASSES),
    "kafka.ssl.engine.factory.class": Refusal(_NO_CLASSES),
    "kafka.ssl.provider": Refusal(_NO_CLASSES),
    "kafka.ssl.trustmanager.algorithm": Refusal("certificates are checked by PKIX's rules only", "PKIX"),
    "kafka.ssl.cipher.suites": Refusal("suites cannot be chosen here; ssl.enabled.protocols can"),
    "kafka.sasl.client.callback.handler.class": Refusal(_NO_CLASSES),
    "kafka.sasl.login.class": Refusal(_NO_CLASSES),
    "kafka.sasl.login.callback.handler.class": Refusal(_NO_CLASSES),
    "kafka.sasl.oauthbearer.": Refusal("OAuth is not supported; sasl.mechanism is PLAIN or SCRAM"),
}


def refusal(name: str, value: str) -> str:
    """Why an option is refused with this value; empty if this module does not refuse it."""
    for refused_name, one in REFUSED.items():
        is_it = name.lower() == refused_name or (refused_name.endswith(".") and name.lower().startswith(refused_name))
        if is_it and not (one.harmless and value.strip().lower() == one.harmless.lower()):
            only = f"; it may only be {one.harmless}" if one.harmless else ""
            return f"{name} would have no effect, and is refused: {one.why}{only}"
    return ""
