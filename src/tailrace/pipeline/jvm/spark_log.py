"""Spark's own log: errors alone, unless somebody asks for more.

Spark logs through log4j. A JVM without a configuration for it prints five lines before it does anything; one that
Spark takes for a shell shows nothing below a warning, whatever level is set later. So sessions give it a
configuration, `log4j2.properties`: errors reach standard error, cut to what happened, and nothing else does. With
`spark.log.level` among a session's settings it shows all of that level and above, uncut. A log4j configuration that the
environment names (`LOG4J_CONFIGURATION_FILE`, or within `JAVA_TOOL_OPTIONS`) is left in charge.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LOG_LEVEL: Final = "spark.log.level"
CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
LOG4J_VARIABLE: Final = "LOG4J_CONFIGURATION_FILE"
LOG4J_PROPERTIES: Final = ("log4j2.configurationFile", "log4j.configurationFile")
OWN_PROPERTY: Final = "tailrace.spark.log"
CHARACTERS_UNCUT: Final = 1_000_000  # of one message
LINES_UNCUT: Final = 1_000  # of one stack trace


def log_options(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """What a driver's JVM is told about its log."""
    java_options = environment.get("JAVA_TOOL_OPTIONS", "")
    is_chosen = LOG4J_VARIABLE in environment or any(name in java_options for name in LOG4J_PROPERTIES)
    if is_chosen or not CONFIGURATION.is_file():  # there is no such file where our modules are in a zip
        return []
    options = [f"-D{LOG4J_PROPERTIES[0]}={CONFIGURATION.as_uri()}"]
    if LOG_LEVEL in settings:
        uncut = {"level": settings[LOG_LEVEL], "characters": CHARACTERS_UNCUT, "lines": LINES_UNCUT}
        options += [f"-D{OWN_PROPERTY}.{name}={value}" for name, value in uncut.items()]
    return options
