"""`--client-config FILE`: how to reach brokers, in a file as Kafka's own tools take it, so that no secret is typed.

It may name brokers, too; `--bootstrap` wins over it, and it over the default.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from tailrace.cli.client.kafka_client import DEFAULT_BOOTSTRAP
from tailrace.cli.failure import Misused

ClientConfig = Annotated[
    str, typer.Option("--client-config", metavar="FILE", help="Settings of Kafka's clients: security.protocol=SSL …")
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
    """What the file says, by the names that Spark's options have; nothing when there is none."""
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"--client-config {path}: {error}.") from None
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith(COMMENTS):
            name, equals, value = line.partition("=")
            if not equals:
                raise Misused(f"--client-config {path}, line {number}: write it like security.protocol=SSL.")
            found[f"kafka.{name.strip()}"] = value.strip()
    return found


def brokers(given: str, options: Mapping[str, str], default: str = DEFAULT_BOOTSTRAP) -> str:
    """Those of the command line, else of the file."""
    return given or options.get("kafka.bootstrap.servers", default)
