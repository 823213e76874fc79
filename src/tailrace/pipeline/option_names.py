"""Options with the names of Spark's kafka source and sink, case-insensitive; an unknown name is an error.

Spark passes option names in lower case, and would never report an option that was not used.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from tailrace.client.security import BadSetting
from tailrace.client.security_settings import NAMES, OF_KEYSTORES, read_security
from tailrace.pipeline.access import Access
from tailrace.pipeline.catalog_tables import TEMPORARY_VIEW_HINT
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka_settings import BROKERS_NAME, HONOURED, IGNORED, KAFKA_PREFIX, REFUSED, refusal

SECURITY_NAMES: Final = tuple(f"{KAFKA_PREFIX}{name}" for name in (*NAMES, *OF_KEYSTORES))
SPARK_OWN: Final = ("path", "checkpointlocation", "queryname")  # added by Spark itself
NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


class Options:
    """The given options, looked up by their documented names."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str]) -> None:
        every = (*known, *HONOURED, *SECURITY_NAMES, *IGNORED)
        names = {name.lower(): name for name in every}
        for name, value in given.items():
            if why := refusal(name, value):
                raise PipelineFailed(why)
            if name.lower() not in (*names, *REFUSED, *SPARK_OWN):
                raise PipelineFailed(_unknown(name, names))
        self._given = {names.get(name.lower(), name): value for name, value in given.items()}
        if not [name for name in self._given if name.lower() not in SPARK_OWN]:
            raise PipelineFailed(
                f"no option has arrived: Spark drops those of CREATE TABLE … OPTIONS (…). {TEMPORARY_VIEW_HINT}"
            )
        if not self._given.get(BROKERS_NAME):
            raise PipelineFailed("kafka.bootstrap.servers is missing: say where a broker is, such as 127.0.0.1:9092")
        try:
            security = read_security(self._given, KAFKA_PREFIX)
        except BadSetting as bad:
            raise PipelineFailed(str(bad)) from None
        self.access = Access(bootstrap=self[BROKERS_NAME], security=security)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def __getitem__(self, name: str) -> str:
        return self._given[name]

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name, default)

    def one_of(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self._given.get(name, default)
        for choice in choices:
            if choice.lower() == value.lower():
                return choice
        raise PipelineFailed(f"{name} = {value!r}: it is one of {', '.join(choices)}")

    def flag(self, name: str, *, default: bool) -> bool:
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"

    def number(self, name: str) -> int | None:
        """An option's value as a whole number of at least 1; None when the option is not given."""
        value = self._given.get(name)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            raise PipelineFailed(f"{name} = {value!r}: it is a whole number of at least 1")
        return int(value)


def access_of(bootstrap: str, options: Mapping[str, str]) -> Access:
    """Broker access from a job's options; options that do not begin with `kafka.` are ignored here."""
    own = {name: value for name, value in options.items() if name.lower().startswith(KAFKA_PREFIX)}
    return Options(with_bootstrap(bootstrap, own), ()).access


def with_bootstrap(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """A job's options with `bootstrap` as the brokers; brokers named in the options themselves are ignored."""
    others = {name: value for name, value in options.items() if name.lower() != BROKERS_NAME}
    return {BROKERS_NAME: bootstrap, **others}


def _unknown(name: str, names: Mapping[str, str]) -> str:
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    known = ", ".join(sorted(one for one in names.values() if one not in IGNORED))
    hint = f"did you mean {names[near[0]]}?" if near else f"known are {known}"
    return f"there is no option {name}; {hint}"
