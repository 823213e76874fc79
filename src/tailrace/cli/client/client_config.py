"""`--client-config FILE`: client settings in a properties file, as Kafka's tools take it, to keep secrets off the
command line.

The file may set bootstrap.servers; `--bootstrap` overrides it, and it overrides the default.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from tailrace.cli.client.kafka_client import DEFAULT_BOOTSTRAP
from tailrace.cli.failure import Misused

ClientConfig = Annotated[
    str,
    typer.Option(
        "--client-config", metavar="FILE", help="Kafka client settings, one security.protocol=SSL … per line."
    ),
]
Brokers = Annotated[
    str,
    typer.Option(
        "--bootstrap", "-b", metavar="HOST:PORT", envvar="TAILRACE_BOOTSTRAP", help="A broker to connect to.",
        show_default=DEFAULT_BOOTSTRAP,
    ),
]  # fmt: skip
COMMENTS: Final = ("#", "!")


def client_options(path: str) -> dict[str, str]:
    """The settings in the file, under the names of Spark's options (kafka.…); none if no file is given."""
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
            found[f"kafka.{name.strip()}"] = value.strip()
    return found


def brokers(given: str, options: Mapping[str, str], default: str = DEFAULT_BOOTSTRAP) -> str:
    """The brokers given by --bootstrap, else those of the file, else the default."""
    return given or options.get("kafka.bootstrap.servers", default)
