"""`kafka.ssl.*` and `kafka.sasl.*` as Kafka writes them; and no secret in what is said of them."""

import json
from pathlib import Path

import pytest

from tailrace.cli.client.client_config import brokers, client_options
from tailrace.cli.failure import Misused
from tailrace.client.security import tls_context
from tailrace.pipeline.access import Access, access_from
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.option_names import Options, access_of, with_bootstrap
from tailrace.pipeline.source.options import read_options

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "pen=cil,s3cret"


def security(**more: str) -> Options:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in more.items()}
    return Options({"kafka.bootstrap.servers": "127.0.0.1:9092", **given}, ())


@pytest.mark.parametrize(
    ("jaas", "wanted"),
    [
        (f'{SCRAM_MODULE} required username="alice" password="{SECRET}";', ("alice", SECRET)),
        (f"{SCRAM_MODULE} required\n  username='al ice'\n  password='a;b' ;  ", ("al ice", "a;b")),
        (f'{SCRAM_MODULE} required password="a\\"b\\\\c" tokenauth=true username=alice;', ("alice", 'a"b\\c')),
        (f'{SCRAM_MODULE} required username="alice" password="";', ("alice", "")),
    ],
)
def test_the_login_in_kafkas_own_syntax(jaas: str, wanted: tuple[str, str]) -> None:
    options = security(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=jaas)
    sasl = options.access.security.sasl
    assert sasl is not None
    assert (sasl.mechanism, (sasl.username, sasl.password)) == ("SCRAM-SHA-512", wanted)


@pytest.mark.parametrize(
    "jaas",
    ["", "nonsense", f"{SCRAM_MODULE} required password={SECRET};", f'{SCRAM_MODULE} username="a" password="{SECRET}"'],
)
def test_what_is_no_login_is_refused_without_repeating_it(jaas: str) -> None:
    with pytest.raises(PipelineFailed, match=r"kafka\.sasl\.jaas\.config is not of the form") as failed:
        security(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert SECRET not in str(failed.value)


def test_no_secret_is_shown() -> None:
    jaas = f'{SCRAM_MODULE} required username="alice" password="{SECRET}";'
    given = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": jaas}
    options = read_options({"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders", **given}, "batch")
    assert options.access.security.sasl is not None
    assert options.access.security.sasl.password == SECRET
    assert SECRET not in repr(options)


@pytest.mark.parametrize(
    ("enabled", "newest", "wanted"),
    [
        ("", "", ("TLSv1.2", "TLSv1.3")),
        ("TLSv1.3", "TLSv1.3", ("TLSv1.3", "TLSv1.3")),
        ("TLSv1.2,TLSv1.1,TLSv1", "TLS", ("TLSv1.2", "TLSv1.2")),
        ("TLSv1.2, TLSv1.3", "TLSv1.2", ("TLSv1.2", "TLSv1.2")),
    ],
)
def test_which_versions_of_tls_are_spoken(enabled: str, newest: str, wanted: tuple[str, str]) -> None:
    said = {"ssl_enabled_protocols": enabled} | ({"ssl_protocol": newest} if newest else {})
    tls = security(security_protocol="SSL", **said).access.security.tls
    assert tls is not None
    context = tls_context(tls)
    found = (context.minimum_version.name.replace("_", "."), context.maximum_version.name.replace("_", "."))
    assert found == wanted


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"security_protocol": "SSL", "ssl_enabled_protocols": "TLSv1.1"}, "leaves neither TLSv1.2 nor TLSv1.3"),
        (
            {"security_protocol": "SSL", "ssl_enabled_protocols": "TLSv1.3", "ssl_protocol": "TLSv1.2"},
            "leaves neither TLSv1.2 nor TLSv1.3",
        ),
        ({"security_protocol": "SSL", "ssl_protocol": "SSLv3"}, "it is one of TLS, TLSv1.2, TLSv1.3"),
        ({"security_protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security_protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "one of PLAIN, SCRAM-SHA-256"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "JKS"}, "in PEM alone"),
        ({"security_protocol": "SSL", "ssl_keystore_password": SECRET}, "for Java's keystores"),
        ({"security_protocol": "SSL", "ssl_ca_location": "/no/such.pem"}, "No such file"),
        ({"security_protocol": "SSL", "ssl_truststore_certificates": "-----BEGIN "}, "no certificates in PEM"),
        ({"security_protocol": "SSL", "ssl_keystore_key": SECRET}, "its private key in PEM"),
        ({"ssl_truststore_lokation": "x"}, r"did you mean kafka\.ssl\.truststore\.location"),
    ],
)
def test_what_bad_input_gets(given: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineFailed, match=said) as failed:
        security(**given)
    assert SECRET not in str(failed.value)


def test_a_keystore_of_java_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(PipelineFailed, match=r"trust\.jks: it holds no PEM.*keytool.*openssl.*truststore\.type = PEM"):
        security(security_protocol="SSL", ssl_truststore_location=str(tmp_path / "trust.jks"))


def test_a_file_of_settings_as_kafkas_tools_take_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text('# ours\n\n security.protocol = SSL\n!no\nsasl.jaas.config=M required a="b=c";\n')
    wanted = {"kafka.security.protocol": "SSL", "kafka.sasl.jaas.config": 'M required a="b=c";'}
    assert client_options(str(file)) == wanted
    file.write_text("security.protocol=SSL\nSSL\n")
    with pytest.raises(Misused, match=r"line 2: .* has no '='; write NAME=VALUE"):
        client_options(str(file))
    with pytest.raises(Misused, match="No such file"):
        client_options(str(tmp_path / "none"))


def test_the_brokers_of_the_command_line_win(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    options = client_options(str(file))
    assert brokers("flag:1", options) == "flag:1"
    assert [brokers("", options), brokers("", {}), brokers("", {}, "")] == ["file:1", "127.0.0.1:9092", ""]
    assert access_of("flag:1", options).bootstrap == "flag:1"
    assert with_bootstrap("flag:1", {"Kafka.Bootstrap.Servers": "file:1", "queryId": "q"}) == {
        "kafka.bootstrap.servers": "flag:1", "queryId": "q",
    }  # fmt: skip


def test_an_access_travels_as_json() -> None:
    options = security(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{SCRAM_MODULE} required username="alice" password="{SECRET}";',
    )
    assert access_from(json.loads(json.dumps(options.access.to_dict()))) == options.access
    assert access_from(Access(bootstrap="a:1").to_dict()) == Access(bootstrap="a:1")
