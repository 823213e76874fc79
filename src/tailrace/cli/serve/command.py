"""`tailrace serve`: from words on the command line to `Settings`, then run.

The flags are the rows of `model/settings.py` that have one. Every setting can also stand in the YAML file that
`--config` names, or in the environment; flags win over the environment, the environment over the file.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.cli.failure import Misused
from tailrace.model.settings import Row, SettingError, Settings, load, row, rows, variable_name, yaml_name

if TYPE_CHECKING:
    from yaml import Node

CLIENT_VARIABLES: Final = ("TAILRACE_BOOTSTRAP",)  # those of client commands, which set nothing of a broker

EPILOG: Final = """\
examples:
  tailrace serve                                       one broker on 127.0.0.1:9092, data in ./tailrace-data
  tailrace serve --kafka-port 0 --data-dir /tmp/try    a free port; the line "ready kafka=HOST:PORT …" tells which
  tailrace serve --config examples/broker.yaml         settings from a file, one "name_of_setting: value" a line
  TAILRACE_NUM_PARTITIONS=4 tailrace serve             settings from the environment
  tailrace serve --join 10.0.0.1:9092 --host 0.0.0.0 --advertised-host 10.0.0.2 --rack b
                                                       a broker of the cluster that 10.0.0.1 is in; it needs
                                                       --join only once, and --peer-port where a firewall asks for it

Standard output gets one line, "ready kafka=HOST:PORT peer=HOST:PORT", when clients can connect; logs go to standard
error. `tailrace cluster up` runs several brokers on this machine.
Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 could not start, 2 a flag or setting was wrong."""


def serve(words: Sequence[str]) -> int:
    given = vars(_parser().parse_args(words))
    config, until_eof = given.pop("config"), given.pop("until_eof")
    settings = settings_from(_read_yaml(config) if config else {}, os.environ, given, config or "")
    from tailrace.cli.serve.running import run_broker  # after the flags are known to be good: --help stays quick

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
        raise Misused(f"{text}{stop}\n`tailrace settings` shows them all, with what each can be.") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tailrace serve",
        description="Run one broker until Ctrl-C.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="A YAML file with settings.")
    for name, one in rows().items():
        setting = row(one)
        if setting.flag is not None:
            parser.add_argument(
                setting.flag, dest=yaml_name(name), metavar=_metavar(setting), help=_help(setting, one.default)
            )
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="Stop when standard input ends: for programs that start a broker and may die before it.",
    )
    return parser


def _metavar(setting: Row) -> str:
    return setting.name.rpartition(".")[2].upper()


def _help(setting: Row, default: object) -> str:
    shown = f" Default: {default}." if default != "" else ""
    return f"{setting.help}{shown} Variable: {variable_name(setting.name)}.".replace("%", "%%")


def _read_yaml(path: str) -> Mapping[str, object]:
    import yaml  # 30 ms that only those pay who have a file

    try:
        with open(path, encoding="utf-8") as file:
            _refuse_repeated_names(yaml.compose(file, yaml.SafeLoader), path)
            file.seek(0)
            content = yaml.safe_load(file)
    except OSError as error:
        raise Misused(f"cannot read the settings in {path}: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Misused(f"{path} is no YAML: {' '.join(str(error).split())}.") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Misused(f"{path} must hold lines of `name_of_setting: value`, it holds a {type(content).__name__}.")
    return {str(name).replace(".", "_"): value for name, value in content.items()}


def _refuse_repeated_names(top: "Node | None", path: str) -> None:
    """YAML itself lets the last of two lines win, in silence; with or without dots they are the same setting."""
    from yaml import MappingNode

    lines: dict[str, int] = {}
    for key, _ in top.value if isinstance(top, MappingNode) else ():
        name, line = str(key.value).replace(".", "_"), key.start_mark.line + 1
        if name in lines:
            raise Misused(f"{path} says {name} twice, in lines {lines[name]} and {line}: keep one of them.")
        lines[name] = line
