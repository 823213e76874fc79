"""`tailrace serve`: build the `Settings` from file, environment and flags, then run the broker.

The flags are generated from the rows of `model/settings.py` that have one. Every setting can also be in the YAML file
given by `--config`, or in the environment; flags override the environment, the environment overrides the file.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import TYPE_CHECKING, Any, Final

from tailrace.cli.failure import Misused
from tailrace.model.settings import Row, SettingError, Settings, kind_of, load, row, rows, variable_name, yaml_name

if TYPE_CHECKING:
    from yaml import Node

CLIENT_VARIABLES: Final = ("TAILRACE_BOOTSTRAP",)  # of client commands; not settings of a broker

EPILOG: Final = """\
examples:
  tailrace serve                                       one broker on 127.0.0.1:9092, data in ./tailrace-data
  tailrace serve --kafka-port 0 --data-dir /tmp/try    on a free port, printed as "ready kafka=HOST:PORT …"
  tailrace serve --config examples/broker.yaml         settings from a file, one "name_of_setting: value" per line
  TAILRACE_NUM_PARTITIONS=4 tailrace serve             settings from the environment
  tailrace serve --join 10.0.0.1:9092 --host 0.0.0.0 --advertised-host 10.0.0.2 --rack b
                                                       join the cluster of 10.0.0.1; --join is needed only at the
                                                       first start, --peer-port only if a firewall needs a fixed port

When clients can connect, one line is printed to standard output: "ready kafka=HOST:PORT peer=HOST:PORT". Logs go to
standard error. `tailrace cluster up` runs several brokers on this machine.
Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 could not start or failed, 2 a flag or setting is invalid."""


def serve(words: Sequence[str]) -> int:
    given = vars(_parser().parse_args(words))
    config, until_eof = given.pop("config"), given.pop("until_eof")
    settings = settings_from(read_yaml(config) if config else {}, os.environ, given, config or "")
    from tailrace.cli.serve.running import run_broker  # only after the flags are parsed: keeps --help fast

    return run_broker(settings, until_eof=until_eof)


def settings_from(
    yaml: Mapping[str, object], environment: Mapping[str, str], flags: Mapping[str, object], file: str
) -> Settings:
    own = {name: value for name, value in environment.items() if name not in CLIENT_VARIABLES}
    try:
        return load(yaml, own, flags, file=file)
    except SettingError as error:
        text = str(error)
        stop = "" if text.endswith("?") else "."
        raise Misused(f"{text}{stop}\n`tailrace settings` lists all settings and their values.") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tailrace serve",
        description="Run one broker until Ctrl-C.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="A YAML file with settings.")
    add_flags(parser, list(rows()))
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="Stop when standard input is closed: for a parent process that may die without stopping the broker.",
    )
    return parser


def add_flags(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Flags for those of these settings that have one."""
    for name in names:
        one = rows()[name]
        setting = row(one)
        if setting.flag is not None:
            parser.add_argument(setting.flag, dest=yaml_name(name), help=_help(setting, one.default), **_value(one))


def _value(one: "Field[Any]") -> dict[str, Any]:
    if kind_of(one) is bool:
        return {"action": "store_const", "const": "true"}
    return {"metavar": _metavar(row(one))}


def _metavar(setting: Row) -> str:
    return setting.name.rpartition(".")[2].upper()


def _help(setting: Row, default: object) -> str:
    shown = f" Default: {default}." if default != "" else ""
    return f"{setting.help}{shown} Environment: {variable_name(setting.name)}.".replace("%", "%%")


def read_yaml(path: str) -> Mapping[str, object]:
    import yaml  # takes 30 ms, so only if there is a file

    try:
        with open(path, encoding="utf-8") as file:
            _refuse_repeated_names(yaml.compose(file, yaml.SafeLoader), path)
            file.seek(0)
            content = yaml.safe_load(file)
    except OSError as error:
        raise Misused(f"--config {path}: cannot read the file: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Misused(f"--config {path}: the file is not valid YAML: {' '.join(str(error).split())}.") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Misused(
            f"--config {path}: the file must have lines of `name_of_setting: value`, but is a {type(content).__name__}."
        )
    return {str(name).replace(".", "_"): value for name, value in content.items()}


def _refuse_repeated_names(top: "Node | None", path: str) -> None:
    """Reject a setting that occurs twice: YAML would silently use the last. `a.b` and `a_b` are the same setting."""
    from yaml import MappingNode

    lines: dict[str, int] = {}
    for key, _ in top.value if isinstance(top, MappingNode) else ():
        name, line = str(key.value).replace(".", "_"), key.start_mark.line + 1
        if name in lines:
            raise Misused(f"--config {path}: {name} is set twice, in lines {lines[name]} and {line}: remove one.")
        lines[name] = line
