"""`--bootstrap` and `--client-config FILE`: which brokers a command connects to, and how.

The file has client settings, one NAME=VALUE a line, with the names that Kafka's own tools use; so one file serves these
and all commands here, and secrets stay off the command line. It may set bootstrap.servers; `--bootstrap` overrides it,
and it overrides the default.
"""

import ssl
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

import typer

from tailrace.cli.failure import Misused
from tailrace.client.security import PLAINTEXT, BadSetting, Security, tls_context
from tailrace.client.security_settings import NAMES, OF_KEYSTORES, read_security
from tailrace.model.frozen import frozen
from tailrace.pipeline.kafka_settings import IGNORED, KAFKA_PREFIX

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
ClientConfig = Annotated[
    str,
    typer.Option(
        "--client-config", "--command-config", metavar="FILE",
        help="Kafka client settings such as security.protocol=SSL, one per line, for TLS and logins.",
    ),
]  # fmt: skip
Brokers = Annotated[
    str,
    typer.Option(
        "--bootstrap", "-b", metavar="HOST:PORT", envvar="TAILRACE_BOOTSTRAP", help="A broker to connect to.",
        show_default=DEFAULT_BOOTSTRAP,
    ),
]  # fmt: skip
COMMENTS: Final = ("#", "!")
SECURITY_PREFIXES: Final = ("security.", "ssl.", "sasl.")
NEAR: Final = 0.85  # how alike a name must be to one of a security setting, to be taken for a mistyped one


@frozen
class Access:
    """The brokers of a command, and how connections to them are secured. Its text is the addresses."""

    bootstrap: str
    security: Security = PLAINTEXT
    config: str = ""  # the file that has these settings
    keystore: str = ""  # the file with the client's certificate, if it is in a file

    def __str__(self) -> str:
        return self.bootstrap

    @property
    def tls(self) -> ssl.SSLContext | None:
        return None if self.security.tls is None else tls_context(self.security.tls)

    @property
    def advice(self) -> str:
        """What to do when a broker does not accept a connection."""
        if self.config:
            return f"Check security.protocol and the settings ssl.* and sasl.* in {self.config}."
        return (
            "Does this port use TLS, or a login? Then name a file with security.protocol=SSL and what belongs to it: "
            "--client-config FILE."
        )


def access_of(bootstrap: str, path: str) -> Access:
    """The brokers and their security, by the values of `--bootstrap` and `--client-config`."""
    given = _properties(path)
    for name in given:
        _check_name(name, path)
    try:
        security = read_security(given)
    except BadSetting as bad:
        raise Misused(f"--client-config {path}: {bad}.") from None
    return Access(
        bootstrap=bootstrap or given.get("bootstrap.servers", DEFAULT_BOOTSTRAP),
        security=security,
        config=path,
        keystore=given.get("ssl.keystore.location", ""),
    )


def client_options(path: str) -> dict[str, str]:
    """The settings in the file, under the names of Spark's options (kafka.…); none if no file is given."""
    return {f"{KAFKA_PREFIX}{name}": value for name, value in _properties(path).items()}


def brokers(given: str, options: Mapping[str, str], default: str = DEFAULT_BOOTSTRAP) -> str:
    """The brokers given by --bootstrap, else those of the file, else the default."""
    return given or options.get("kafka.bootstrap.servers", default)


def _properties(path: str) -> dict[str, str]:
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"--client-config {path}: cannot read the file: {error}.") from None
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith(COMMENTS):
            name, equals, value = line.partition("=")
            if not equals:
                raise Misused(
                    f"--client-config {path}, line {number}: {line!r} has no '='; write NAME=VALUE, such as "
                    "security.protocol=SSL."
                )
            found[name.strip()] = value.strip()
    return found


def _check_name(name: str, path: str) -> None:
    """Refuse a setting of security that would have no effect. Others only tune Kafka's own client: they are ignored."""
    known = (*NAMES, *OF_KEYSTORES)
    if name in known or f"{KAFKA_PREFIX}{name}" in IGNORED:
        return
    near = get_close_matches(name, known, n=1, cutoff=NEAR)
    if near or name.startswith(SECURITY_PREFIXES):
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(NAMES)}."
        raise Misused(f"--client-config {path}: {name} is not a setting that is known here; {hint}")
