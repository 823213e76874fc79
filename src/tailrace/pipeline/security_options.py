"""Read `kafka.security.protocol`, `kafka.ssl.*` and `kafka.sasl.*`, with Kafka's names and syntax, into a `Security`.

Certificates are in PEM, from a file or in the option itself: Python cannot read Java keystores. Error messages of this
module never contain the value of a secret option.
"""

import re
from typing import TYPE_CHECKING, Final

from tailrace.client.sasl import MECHANISMS, Sasl
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.security import TLS_VERSIONS, Security, Tls, tls_context

if TYPE_CHECKING:
    from tailrace.pipeline.option_names import Options

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NAMES: Final = (
    "kafka.security.protocol",
    "kafka.ssl.truststore.type",
    "kafka.ssl.truststore.location",
    "kafka.ssl.truststore.certificates",
    "kafka.ssl.ca.location",
    "kafka.ssl.keystore.type",
    "kafka.ssl.keystore.location",
    "kafka.ssl.keystore.certificate.chain",
    "kafka.ssl.keystore.key",
    "kafka.ssl.key.password",
    "kafka.ssl.endpoint.identification.algorithm",
    "kafka.ssl.protocol",
    "kafka.ssl.enabled.protocols",
    "kafka.sasl.mechanism",
    "kafka.sasl.jaas.config",
)
# Only for Java keystores; with PEM, only the key has a password.
OF_KEYSTORES: Final = ("kafka.ssl.truststore.password", "kafka.ssl.keystore.password")
PEM_BEGIN: Final = "-----BEGIN "
JAAS_FORM: Final = (
    "kafka.sasl.jaas.config is not of the form org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="…" password="…"; (PlainLoginModule for PLAIN)'
)
_JAAS: Final = re.compile(r"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)\s+(.*?)\s*;\s*", re.DOTALL)
_PAIR: Final = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""", re.DOTALL)


def read_security(options: "Options") -> Security:
    protocol = options.one_of("kafka.security.protocol", PROTOCOLS, "PLAINTEXT")
    tls = _tls(options) if protocol.endswith("SSL") else None
    if tls is not None:
        tls_context(tls)  # fail now if the certificates or the key cannot be read
    return Security(tls=tls, sasl=_sasl(options) if protocol.startswith("SASL") else None)


def _tls(options: "Options") -> Tls:
    for name in OF_KEYSTORES:
        if options.text(name):
            raise PipelineFailed(f"{name} is for Java's keystores. {_advice(name.rsplit('.', 1)[0])}")
    trust, own = "kafka.ssl.truststore", "kafka.ssl.keystore"
    ca = options.text("kafka.ssl.ca.location")
    authorities = options.text(f"{trust}.certificates") or _pem("kafka.ssl.ca.location", ca) or _store(options, trust)
    versions = _versions(options)
    chain, key = options.text(f"{own}.certificate.chain"), options.text(f"{own}.key")
    return Tls(
        authorities=authorities,
        client_certificate=f"{key}\n{chain}\n" if chain or key else _store(options, own),
        key_password=options.text("kafka.ssl.key.password"),
        checks_hostname=options.one_of("kafka.ssl.endpoint.identification.algorithm", ("https", ""), "https")
        == "https",
        oldest=versions[0],
        newest=versions[-1],
    )


def _versions(options: "Options") -> tuple[str, ...]:
    """The TLS versions to use: the enabled ones, but none newer than `ssl.protocol`."""
    name = "kafka.ssl.enabled.protocols"
    newest = options.one_of("kafka.ssl.protocol", ("TLS", *TLS_VERSIONS), "TLS")
    enabled = [one.strip() for one in options.text(name).split(",") if one.strip()] or TLS_VERSIONS
    found = tuple(one for one in TLS_VERSIONS if one in enabled and (newest == "TLS" or one <= newest))
    if not found:  # older TLS versions are ignored silently: they are less secure
        said = f"{name} = {options.text(name)!r} with kafka.ssl.protocol = {newest}"
        raise PipelineFailed(f"{said} leaves neither {' nor '.join(TLS_VERSIONS)}, and no others are spoken")
    return found


def _store(options: "Options", name: str) -> str:
    kind = options.text(f"{name}.type", "PEM")
    if kind.upper() != "PEM":
        raise PipelineFailed(f"{name}.type = {kind}: {_advice(name)}")
    return _pem(f"{name}.location", options.text(f"{name}.location"))


def _pem(name: str, path: str) -> str:
    """The contents of a PEM file; empty when no file is given."""
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError as error:
        raise PipelineFailed(f"{name} = {path}: {error.strerror}") from None
    if PEM_BEGIN not in text:
        raise PipelineFailed(f"{name} = {path}: it holds no PEM. {_advice(name.removesuffix('.location'))}")
    return text


def _advice(name: str) -> str:
    return (
        "Certificates are read in PEM alone. Of a keystore of Java's, `keytool -importkeystore -srckeystore FILE.jks "
        "-destkeystore FILE.p12 -deststoretype PKCS12` and `openssl pkcs12 -in FILE.p12 -out FILE.pem` make that; "
        f"then {name}.type = PEM and {name}.location = FILE.pem"
    )


def _sasl(options: "Options") -> Sasl:
    if "kafka.sasl.mechanism" not in options:
        raise PipelineFailed(f"kafka.sasl.mechanism is missing: it is one of {', '.join(MECHANISMS)}")
    wanted = options.one_of("kafka.sasl.mechanism", MECHANISMS, "")
    username, password = _login(options.text("kafka.sasl.jaas.config"))
    return next(Sasl(mechanism=one, username=username, password=password) for one in MECHANISMS if one == wanted)


def _login(jaas: str) -> tuple[str, str]:
    found = _JAAS.fullmatch(jaas)
    if found is None:
        raise PipelineFailed(JAAS_FORM)
    told = {one[1]: _unquoted(one[2] or one[3] or one[4] or "") for one in _PAIR.finditer(found[1])}
    if not told.get("username") or "password" not in told:
        raise PipelineFailed(JAAS_FORM)
    return told["username"], told["password"]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
