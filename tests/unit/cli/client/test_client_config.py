"""`--client-config FILE`: every command that talks to a broker works over TLS, and says what is wrong with the file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.testing import Broker
from tests.certificates import Authority
from tests.unit.cli.program import Program, run_tailrace


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    """Only clients with a certificate of the authority can use it."""
    with Broker(fsync="never", **authority.mutual_tls()) as broker:
        yield broker


def refused(command: tuple[str, ...], file: str, broker: Broker) -> str:
    """What a command that fails with this file writes to standard error."""
    ran = run_tailrace(*command, "--client-config", file, bootstrap=broker.bootstrap)
    assert ran.code == 1
    return ran.err


def properties(folder: Path, **more: str) -> str:
    """The path of a file with these settings."""
    path = folder / "client.properties"
    path.write_text("# of a test\n" + "".join(f"{name.replace('_', '.')}={value}\n" for name, value in more.items()))
    return str(path)


def mutual(authority: Authority, name: str = "client", password: str = "") -> dict[str, str]:
    secret = {"ssl_key_password": password} if password else {}
    return {
        "security_protocol": "SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": authority.truststore,
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": authority.keystore(name, password=password.encode()),
        **secret,
    }


@pytest.fixture
def secured(tmp_path: Path, authority: Authority, broker: Broker) -> Program:
    """Runs a command with the file."""
    file = properties(tmp_path, **mutual(authority))
    return lambda *words, stdin="": run_tailrace(
        *words, "--client-config", file, stdin=stdin, bootstrap=broker.bootstrap
    )


def test_every_command(secured: Program, topic: str) -> None:
    assert secured("topic", "create", topic).code == 0
    assert secured("produce", topic, stdin="one\ntwo\n").err == f"sent 2 messages to {topic}\n"
    assert secured("consume", topic, "--from-beginning", "--max", "2").out == "one\ntwo\n"
    assert secured("queue", "create", f"{topic}-queue").code == 0
    assert secured("queue", "send", f"{topic}-queue", "three").code == 0
    assert secured("queue", "take", f"{topic}-queue", "--max", "1").out == "three\n"
    assert topic in secured("topic", "list").out.split()
    assert secured("topic", "alter", topic, "--config", "retention.ms=60000").code == 0
    (described,) = json.loads(secured("topic", "describe", topic, "--json").out)
    assert (described["partitions"][0]["end_offset"], described["settings"]) == (2, {"retention.ms": "60000"})
    reset = secured("group", "reset-offsets", topic, "--topic", topic, "--to-latest", "--execute")
    assert reset.code == 0
    assert topic in secured("group", "list").out.split()
    (group,) = json.loads(secured("group", "describe", topic, "--json").out)
    assert group["offsets"][0]["committed"] == 2
    assert secured("group", "delete", topic).code == 0
    assert secured("transaction", "list", "--json").out == "[]\n"
    status = json.loads(secured("cluster", "status", "--json").out)
    assert [one["state"] for one in status["brokers"]] == ["up"]
    assert "nothing to raise" in secured("cluster", "upgrade").out
    measured = secured("bench", "--messages", "100", "--only", "produce", "--only", "consume", "--json")
    assert [json.loads(line)["name"] for line in measured.out.splitlines()] == ["produce", "consume"]
    assert secured("topic", "delete", topic).code == 0


def test_the_file_may_name_the_brokers_and_kafkas_option_works(
    tmp_path: Path, authority: Authority, broker: Broker
) -> None:
    options = mutual(authority, "with-password", password="s3cret")
    file = properties(tmp_path, bootstrap_servers=broker.bootstrap, request_timeout_ms="5000", **options)
    for option in ("--client-config", "--command-config"):
        assert run_tailrace("topic", "list", option, file, bootstrap="").code == 0
    assert run_tailrace("produce", "t", "--command-config", file, bootstrap="", stdin="one\n").code == 0


COMMANDS = (("topic", "list"), ("transaction", "list"), ("cluster", "status"), ("consume", "t"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_file_the_error_says_what_to_do(broker: Broker, command: tuple[str, ...]) -> None:
    ran = run_tailrace(*command, bootstrap=broker.bootstrap)
    assert (ran.code, ran.out) == (1, "")
    assert f"the connection to {broker.bootstrap} was lost" in ran.err
    assert "Does this port use TLS, or a login?" in ran.err
    assert "--client-config FILE" in ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_authority_that_is_not_trusted(
    tmp_path: Path, authority: Authority, broker: Broker, command: tuple[str, ...]
) -> None:
    stranger = Authority(tmp_path, "stranger")
    file = properties(tmp_path, **mutual(authority) | {"ssl_truststore_location": stranger.truststore})
    err = refused(command, file, broker)
    assert f"no TLS with {broker.bootstrap}: the certificate is refused" in err
    assert f"Check security.protocol and the settings ssl.* and sasl.* in {file}." in err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_certificate_where_one_is_wanted(
    tmp_path: Path, authority: Authority, broker: Broker, command: tuple[str, ...]
) -> None:
    file = properties(tmp_path, security_protocol="SSL", ssl_truststore_location=authority.truststore)
    err = refused(command, file, broker)
    assert f"the connection to {broker.bootstrap} was lost" in err
    assert f"in {file}." in err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_login_at_a_port_without_one(
    tmp_path: Path, authority: Authority, broker: Broker, command: tuple[str, ...]
) -> None:
    jaas = 'PlainLoginModule required username="alice" password="s3cret";'
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": jaas}
    file = properties(tmp_path, **mutual(authority) | login)
    err = refused(command, file, broker)
    assert f"{broker.bootstrap} does not offer SASL" in err
    assert "s3cret" not in err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"security_protocol": "TLS"}, "security.protocol = 'TLS': it is one of PLAINTEXT, SSL"),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/no.pem"}, "ssl.truststore.location = /no.pem: No"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "JKS"}, "ssl.truststore.type = JKS: Certificates"),
        ({"security_protocol": "SSL", "ssl_keystore_key": "x"}, "ssl.keystore: it has to hold a certificate"),
        ({"security_protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"securty_protocol": "SSL"}, "securty.protocol is not a setting that is known here; did you mean security."),
        ({"sasl_password": "s3cret"}, "sasl.password is not a setting that is known here"),
    ],
)  # fmt: skip
def test_errors_name_the_file_and_the_setting(tmp_path: Path, given: dict[str, str], expected: str) -> None:
    file = properties(tmp_path, **given)
    for command in (("topic", "list"), ("produce", "t"), ("cluster", "status")):
        ran = run_tailrace(*command, "--client-config", file)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"tailrace: --client-config {file}: {expected}")
        assert "s3cret" not in ran.err


def test_tls_versions_that_a_command_cannot_choose(tmp_path: Path, broker: Broker, authority: Authority) -> None:
    file = properties(tmp_path, **mutual(authority), ssl_enabled_protocols="TLSv1.3")
    assert run_tailrace("topic", "list", "--client-config", file, bootstrap=broker.bootstrap).code == 0
    ran = run_tailrace("produce", "t", "--client-config", file, bootstrap=broker.bootstrap)
    assert (ran.code, "this command cannot choose TLS versions" in ran.err) == (2, True)
