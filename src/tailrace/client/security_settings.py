"""Read `security.protocol`, `ssl.*` and `sasl.*`, with Kafka's names and syntax, into a `Security`.

Certificates are in PEM, from a file or in the setting itself: Python cannot read Java keystores. Error messages of this
module never contain the value of a secret setting. Where settings are given with a prefix, such as `kafka.`, messages
have it, too.
"""

import re
from collections.abc import Mapping
from typing import Final

from tailrace.client.sasl import MECHANISMS, Sasl
from tailrace.client.security import TLS_VERSIONS, BadSetting, Security, TlsSettings, tls_context
from tailrace.ports.pem import read_pem

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NAMES: Final = (
    "security.protocol",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.ca.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "sasl.mechanism",
    "sasl.jaas.config",
)
# Only for Java keystores; with PEM, only the key has a password.
OF_KEYSTORES: Final = ("ssl.truststore.password", "ssl.keystore.password")
PEM_BEGIN: Final = "-----BEGIN "
JAAS_FORM: Final = (
    "sasl.jaas.config is not of the form org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="…" password="…"; (PlainLoginModule for PLAIN)'
)
_JAAS: Final = re.compile(r"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)\s+(.*?)\s*;\s*", re.DOTALL)
_PAIR: Final = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""", re.DOTALL)


def read_security(given: Mapping[str, str], prefix: str = "") -> Security:
    """The security that these settings ask for; others are ignored. `BadSetting` if they are wrong, or a file is."""
    settings = _Settings(given, prefix)
    protocol = settings.one_of("security.protocol", PROTOCOLS, "PLAINTEXT")
    tls = _tls(settings) if protocol.endswith("SSL") else None
    if tls is not None:
        tls_context(tls, prefix)  # fail now if the certificates or the key cannot be read
    return Security(tls=tls, sasl=_sasl(settings) if protocol.startswith("SASL") else None)


class _Settings:
    """The given settings, looked up by Kafka's names; `prefix` stands before each of them."""

    def __init__(self, given: Mapping[str, str], prefix: str) -> None:
        self._given = given
        self.prefix = prefix

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(f"{self.prefix}{name}", default)

    def one_of(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        for choice in choices:
            if choice.lower() == value.lower():
                return choice
        raise self.bad(f"{name} = {value!r}: it is one of {', '.join(choices)}")

    def bad(self, message: str) -> BadSetting:
        """The message begins with the name of a setting."""
        return BadSetting(f"{self.prefix}{message}")


def _tls(settings: _Settings) -> TlsSettings:
    for name in OF_KEYSTORES:
        if settings.text(name):
            raise settings.bad(f"{name} is for Java's keystores. {_advice(settings, name.rsplit('.', 1)[0])}")
    trust, own = "ssl.truststore", "ssl.keystore"
    authorities = settings.text(f"{trust}.certificates") or _pem(settings, "ssl.ca.location") or _store(settings, trust)
    versions = _versions(settings)
    chain, key = settings.text(f"{own}.certificate.chain"), settings.text(f"{own}.key")
    return TlsSettings(
        authorities=authorities,
        client_certificate=f"{key}\n{chain}\n" if chain or key else _store(settings, own),
        key_password=settings.text("ssl.key.password"),
        checks_hostname=settings.one_of("ssl.endpoint.identification.algorithm", ("https", ""), "https") == "https",
        oldest=versions[0],
        newest=versions[-1],
    )


def _versions(settings: _Settings) -> tuple[str, ...]:
    """The TLS versions to use: the enabled ones, but none newer than `ssl.protocol`."""
    name = "ssl.enabled.protocols"
    newest = settings.one_of("ssl.protocol", ("TLS", *TLS_VERSIONS), "TLS")
    enabled = [one.strip() for one in settings.text(name).split(",") if one.strip()] or TLS_VERSIONS
    found = tuple(one for one in TLS_VERSIONS if one in enabled and (newest == "TLS" or one <= newest))
    if not found:  # older TLS versions are ignored silently: they are less secure
        said = f"{name} = {settings.text(name)!r} with {settings.prefix}ssl.protocol = {newest}"
        raise settings.bad(f"{said} leaves neither {' nor '.join(TLS_VERSIONS)}; only these are supported")
    return found


def _store(settings: _Settings, name: str) -> str:
    kind = settings.text(f"{name}.type", "PEM")
    if kind.upper() != "PEM":
        raise settings.bad(f"{name}.type = {kind}: {_advice(settings, name)}")
    return _pem(settings, f"{name}.location")


def _pem(settings: _Settings, name: str) -> str:
    """The contents of the PEM file that a setting names; empty when it is not given."""
    path = settings.text(name)
    if not path:
        return ""
    try:
        text = read_pem(path)
    except OSError as error:
        raise settings.bad(f"{name} = {path}: {error.strerror}") from None
    if PEM_BEGIN not in text:
        raise settings.bad(f"{name} = {path}: it holds no PEM. {_advice(settings, name.removesuffix('.location'))}")
    return text


def _advice(settings: _Settings, name: str) -> str:
    name = f"{settings.prefix}{name}"
    return (
        "Certificates are read in PEM alone. Of a keystore of Java's, `keytool -importkeystore -srckeystore FILE.jks "
        "-destkeystore FILE.p12 -deststoretype PKCS12` and `openssl pkcs12 -in FILE.p12 -out FILE.pem` make that; "
        f"then {name}.type = PEM and {name}.location = FILE.pem"
    )


def _sasl(settings: _Settings) -> Sasl:
    if not settings.text("sasl.mechanism"):
        raise settings.bad(f"sasl.mechanism is missing: it is one of {', '.join(MECHANISMS)}")
    wanted = settings.one_of("sasl.mechanism", MECHANISMS, "")
    username, password = _login(settings)
    return next(Sasl(mechanism=one, username=username, password=password) for one in MECHANISMS if one == wanted)


def _login(settings: _Settings) -> tuple[str, str]:
    found = _JAAS.fullmatch(settings.text("sasl.jaas.config"))
    if found is None:
        raise settings.bad(JAAS_FORM)
    pairs = {one[1]: _unquoted(one[2] or one[3] or one[4] or "") for one in _PAIR.finditer(found[1])}
    if not pairs.get("username") or "password" not in pairs:
        raise settings.bad(JAAS_FORM)
    return pairs["username"], pairs["password"]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
