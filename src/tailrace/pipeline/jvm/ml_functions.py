"""Register the few SQL functions of Spark ML when `pyspark.ml` is imported, not when the session starts.

Spark registers these functions at the start of every session, which takes a third of the startup time: nothing else
in the startup needs Scala's reflection. So a local session is configured not to look for session extensions on the
class path, and this module registers the functions when they are needed.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

PACKAGE: Final = "pyspark.ml"
LOAD_EXTENSIONS_SETTING: Final = "spark.sql.extensions.test.loadFromCp"
OTHERS: Final = ("spark.jars", "spark.sql.extensions")  # settings that may bring in other session extensions
REGISTRATION: Final = "org.apache.spark.sql.ml.InternalFunctionRegistration$"  # registers on class load


class _BeforeImport(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == PACKAGE:
            sys.meta_path.remove(self)
            _register()


def may_wait(settings: Mapping[str, str]) -> bool:
    """Whether registration can be deferred: these settings bring in no other session extensions."""
    return not any(name.startswith(OTHERS) for name in settings)


def register_with_import() -> None:
    """Register the functions now if `pyspark.ml` is imported, else when it is imported."""
    if PACKAGE in sys.modules:
        _register()
    elif not any(isinstance(one, _BeforeImport) for one in sys.meta_path):
        sys.meta_path.insert(0, _BeforeImport())


def _register() -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if SparkContext._jvm is not None:
        with suppress(Py4JError):  # a Spark version without this class has no functions to register
            SparkContext._jvm.java.lang.Class.forName(REGISTRATION)
