"""How one setting is declared, named and parsed.

A row has the setting's Kafka name, from which its YAML name (`log_retention_ms`) and its environment variable
(`TAILRACE_LOG_RETENTION_MS`) follow; with `flag` it has a command-line flag, too. `check` tests a value, and `wants`
describes the allowed values to users.
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, field
from typing import Any, Final, cast

from tailrace.model.frozen import frozen

VARIABLE_PREFIX: Final = "TAILRACE_"
WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")  # int() would also accept 1_000 and digits of other scripts


class SettingError(ValueError):
    """An unknown setting, or a value that it does not allow."""


@frozen(kw_only=False)
class Row:
    """The declaration of one setting."""

    name: str
    help: str
    flag: str | None
    check: Callable[[Any], bool] | None
    wants: str
    secret: bool = False  # shown to nobody


def setting(
    name: str,
    default: Any,
    help: str,
    *,
    flag: str | None = None,
    check: Callable[[Any], bool] | None = None,
    wants: str = "",
    secret: bool = False,
) -> Any:
    metadata = {"row": Row(name, help, flag, check, wants, secret)}
    return field(default=default, repr=not secret, metadata=metadata)


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
        shown = "***" if row.secret else value
        given = f"{row.name}={shown}" if value != "" else f"{row.name} is empty"
        raise SettingError(f"{given}: it must be {row.wants}")


def parse(kafka_name: str, kind: type, given: object) -> object:
    """A value from YAML, the environment or a Kafka client, converted to the type of the setting."""
    if given is None:
        raise SettingError(f"{kafka_name} has no value: set one, or remove the setting")
    if not isinstance(given, (str, int, float)):
        raise SettingError(f"{kafka_name}={given}: it must be a single value")
    text = str(given).strip()
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise SettingError(f"{kafka_name}={given}: it must be true or false")
    if kind is int:
        try:
            if WHOLE_NUMBER.fullmatch(text):
                return int(text)  # raises ValueError for thousands of digits
        except ValueError:
            pass
        raise SettingError(f"{kafka_name}={given}: it must be a whole number")
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise SettingError(f"{kafka_name}={given}: it must be a number") from None
    if isinstance(given, bool):  # YAML reads an unquoted yes, no, on or off as a boolean
        raise SettingError(f"{kafka_name}={given}: it must be a string; put it in quotes")
    return text


def kind_of(one: "Field[Any]") -> type:
    assert one.default is not MISSING
    return type(one.default)
