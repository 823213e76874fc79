"""The few functions that Spark's machine learning adds to a session, added when somebody imports `pyspark.ml`.

Spark adds them to every session as it starts, and that is a third of the start: nothing else in it needs Scala's
reflection. So a local session is told not to look for such additions, and this makes up for it in time.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

PACKAGE: Final = "pyspark.ml"
LOOKS_FOR_THEM: Final = "spark.sql.extensions.test.loadFromCp"
OTHERS: Final = ("spark.jars", "spark.sql.extensions")  # settings by which a session may get more that adds to it
REGISTRATION: Final = "org.apache.spark.sql.ml.InternalFunctionRegistration$"  # does it when it is loaded


class _BeforeImport(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == PACKAGE:
            sys.meta_path.remove(self)
            _register()


def may_wait(settings: Mapping[str, str]) -> bool:
    """Whether there is nothing else that would want to add to a session with these settings."""
    return not any(name.startswith(OTHERS) for name in settings)


def register_with_import() -> None:
    """For a session that was told not to look for them."""
    if PACKAGE in sys.modules:
        _register()
    elif not any(isinstance(one, _BeforeImport) for one in sys.meta_path):
        sys.meta_path.insert(0, _BeforeImport())


def _register() -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if SparkContext._jvm is not None:
        with suppress(Py4JError):  # a Spark that has no such class has nothing to add
            SparkContext._jvm.java.lang.Class.forName(REGISTRATION)
