"""Apache Kafka 4.3 with a listener for each security protocol, and one user that all SASL mechanisms know."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from benchmarks import kafka

USERNAME, PASSWORD = "alice", "al,ice=s secret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = ("ssl", "sasl_plaintext", "sasl_ssl")
SETTINGS = """\
log.retention.ms=-1
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SSL://127.0.0.1:{ssl},\
SASL_PLAINTEXT://127.0.0.1:{sasl_plaintext},SASL_SSL://127.0.0.1:{sasl_ssl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\
SASL_SSL:SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
listener.name.ssl.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config={plain} required user_{username}="{password}";
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={scram} required;
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} required user_{username}="{password}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;
"""

Addresses = Mapping[str, str]  # by security protocol


def jaas(mechanism: str, password: str = PASSWORD) -> str:
    """The value of sasl.jaas.config for the user."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    return f'{module} required username="{USERNAME}" password="{password}";'


@contextmanager
def secured_kafka(folder: Path, keystore: str, truststore: str) -> Iterator[Addresses]:
    """The listener SSL wants a certificate of the client. `Missing` without Java and Maven."""
    kafka.jars()
    ports = dict(zip(LISTENERS, kafka.free_ports(len(LISTENERS)), strict=True))
    files = {"keystore": keystore, "truststore": truststore}
    more = SETTINGS.format(**ports, **files, scram=SCRAM, plain=PLAIN, username=USERNAME, password=PASSWORD)
    with kafka.serving(folder, more) as server:
        _add_user(f"127.0.0.1:{server.port}")
        found = {"plaintext": server.port, **ports}
        yield {name.upper(): f"127.0.0.1:{port}" for name, port in found.items()}


def _add_user(bootstrap: str) -> None:
    """To Kafka's own store of SCRAM credentials."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 8192)
        wanted = UserScramCredentialUpsertion(USERNAME, info, PASSWORD.encode())
        for done in admin.alter_user_scram_credentials([wanted]).values():
            done.result()
