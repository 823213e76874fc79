"""Spark's own log: errors only, unless the settings ask for more.

Spark logs through log4j. A JVM without a log4j configuration prints five lines before it does anything; a JVM that
Spark takes for a shell logs nothing below a warning, whatever level is set later. So sessions pass the configuration
`log4j2.properties`: only errors are written to standard error, shortened to what happened. If a session sets
`spark.log.level`, messages of that level and above are written in full. A log4j configuration in the environment
(`LOG4J_CONFIGURATION_FILE`, or in `JAVA_TOOL_OPTIONS`) takes precedence.
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
CHARACTERS_UNCUT: Final = 1_000_000  # per message
LINES_UNCUT: Final = 1_000  # per stack trace


def log_options(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The logging options for a driver's JVM."""
    java_options = environment.get("JAVA_TOOL_OPTIONS", "")
    is_chosen = LOG4J_VARIABLE in environment or any(name in java_options for name in LOG4J_PROPERTIES)
    if is_chosen or not CONFIGURATION.is_file():  # the file does not exist if Tailrace is imported from a zip
        return []
    options = [f"-D{LOG4J_PROPERTIES[0]}={CONFIGURATION.as_uri()}"]
    if LOG_LEVEL in settings:
        uncut = {"level": settings[LOG_LEVEL], "characters": CHARACTERS_UNCUT, "lines": LINES_UNCUT}
        options += [f"-D{OWN_PROPERTY}.{name}={value}" for name, value in uncut.items()]
    return options
