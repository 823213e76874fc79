"""`tailrace gateway`: the doors other than Kafka's, in front of any cluster that speaks Kafka's protocol.

Its flags are those of `tailrace serve` that are about doors; all settings of doors can be in a YAML file or in the
environment, too.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Final

from tailrace.cli.failure import Failed, Misused
from tailrace.cli.serve.command import add_flags, read_yaml, settings_from
from tailrace.doors.client_doors import CLIENT_DOORS, CannotOpen, asked_for, check_can_open
from tailrace.model.addresses import parse_addresses
from tailrace.model.settings import Settings, rows

OF_GATEWAYS: Final = ("host", "advertised.host", "insecure", "log.level")  # beside the settings of doors
DATA_DIR: Final = "./tailrace-gateway"

EPILOG: Final = """\
examples:
  tailrace gateway --upstream 127.0.0.1:9092 --http-port 8001
  tailrace gateway --upstream kafka-1:9093,kafka-2:9093 --client-config client.properties --grpc-port 50051

The upstream may be a cluster of Tailrace or of Apache Kafka, 4.2 or newer where messages are taken one by one. Its TLS
and its login are in the file of --client-config, with the names that Kafka's own tools use. All callers of the gateway
share this one login: it listens on loopback unless --insecure is given. docs/gateway.md says what each door offers.

When clients can connect, one line is printed to standard output: "ready http=HOST:PORT …". Logs go to standard error.
Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 could not start or failed, 2 a flag or setting is invalid."""


def gateway(words: Sequence[str]) -> int:
    given = vars(_parser().parse_args(words))
    upstream, client_config, config = given.pop("upstream"), given.pop("client_config"), given.pop("config")
    until_eof = given.pop("until_eof")
    file = {"data_dir": DATA_DIR, **(read_yaml(config) if config else {})}
    settings = settings_from(file, os.environ, given, config or "")
    _check(settings, upstream)
    from tailrace.cli.client.client_config import access_of

    access = access_of(upstream, client_config)
    try:
        check_can_open(settings)
    except CannotOpen as error:
        raise Failed(f"cannot start: {error}") from None
    from tailrace.cli.gateway.running import run_gateway

    return run_gateway(settings, access, until_eof=until_eof)


def _check(settings: Settings, upstream: str) -> None:
    if not asked_for(settings):
        flags = [one.flag for one in CLIENT_DOORS]
        raise Misused(f"no door is asked for: name at least one, with {', '.join(flags[:-1])} or {flags[-1]}.")
    try:
        if not parse_addresses(upstream):
            raise Misused("--upstream is empty: name at least one broker, as HOST:PORT.")
    except ValueError as error:
        raise Misused(f"--upstream {upstream}: {error}.") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tailrace gateway",
        description="Serve HTTP, gRPC or DMQP clients in front of a Kafka cluster, until Ctrl-C.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--upstream", metavar="HOST:PORT[,…]", required=True, help="Brokers of the upstream cluster.")
    parser.add_argument(
        "--client-config",
        "--command-config",
        metavar="FILE",
        default="",
        help="Kafka client settings such as security.protocol=SSL, one per line, for TLS and logins upstream.",
    )
    parser.add_argument("--config", metavar="FILE", help="A YAML file with settings of the doors.")
    doors = tuple(f"{one.listener}." for one in CLIENT_DOORS)
    add_flags(parser, [name for name in rows() if name in OF_GATEWAYS or name.startswith(doors)])
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help=f"Folder for files that a door creates, such as a certificate. Default: {DATA_DIR}.",
    )
    parser.add_argument("--until-eof", action="store_true", help="Stop when standard input is closed.")
    return parser
