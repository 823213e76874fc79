"""How one setting is declared, named and read.

A row gives it its Kafka name; from that come its form in YAML (`log_retention_ms`) and its environment variable
(`TAILRACE_LOG_RETENTION_MS`); where `flag` is set it has a flag on the command line too. `check` and `wants` say what
it can be, to code and to people.
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, field
from typing import Any, Final, cast

from tailrace.model.frozen import frozen

VARIABLE_PREFIX: Final = "TAILRACE_"
WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")  # int() alone also takes 1_000 and digits of other scripts


class SettingError(ValueError):
    """A setting that is not there, or a value it cannot take."""


@frozen(kw_only=False)
class Row:
    """One setting, as people see it."""

    name: str
    help: str
    flag: str | None
    check: Callable[[Any], bool] | None
    wants: str


def setting(
    name: str,
    default: Any,
    help: str,
    *,
    flag: str | None = None,
    check: Callable[[Any], bool] | None = None,
    wants: str = "",
) -> Any:
    return field(default=default, metadata={"row": Row(name, help, flag, check, wants)})


def one_of(*choices: str) -> dict[str, Any]:
    return {"check": lambda value: value in choices, "wants": "one of " + ", ".join(choices)}


def between(low: int, high: int) -> dict[str, Any]:
    return {"check": lambda value: low <= value <= high, "wants": f"from {low} to {high}"}


def row(one: "Field[Any]") -> Row:
    return cast(Row, one.metadata["row"])


def yaml_name(kafka_name: str) -> str:
    return kafka_name.replace(".", "_")


def variable_name(kafka_name: str) -> str:
    return VARIABLE_PREFIX + yaml_name(kafka_name).upper()


def check(row: Row, value: object) -> None:
    if row.check is not None and not row.check(value):
        given = f"{row.name}={value}" if value != "" else f"{row.name} is empty"
        raise SettingError(f"{given}: it must be {row.wants}")


def parse(kafka_name: str, kind: type, given: object) -> object:
    """A value from YAML, the environment or a client's text, as its type."""
    if given is None:
        raise SettingError(f"{kafka_name} has no value: give it one, or leave it out")
    if not isinstance(given, (str, int, float)):
        raise SettingError(f"{kafka_name}={given}: it must be one value")
    text = str(given).strip()
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise SettingError(f"{kafka_name}={given}: it must be true or false")
    if kind is int:
        try:
            if WHOLE_NUMBER.fullmatch(text):
                return int(text)  # refuses thousands of digits
        except ValueError:
            pass
        raise SettingError(f"{kafka_name}={given}: it must be a whole number")
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise SettingError(f"{kafka_name}={given}: it must be a number") from None
    if isinstance(given, bool):  # YAML's own idea of yes, no, on and off
        raise SettingError(f"{kafka_name}={given}: it must be text; put it in quotes")
    return text


def kind_of(one: "Field[Any]") -> type:
    assert one.default is not MISSING
    return type(one.default)
