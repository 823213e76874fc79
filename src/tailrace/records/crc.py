"""CRC-32C, from the extension module of the `crc32c` package.

When the package is imported it looks up its own version in the metadata of all installed packages, which takes a tenth
of a broker's start-up time. So the extension is loaded directly; if it is not found, the package is imported.
"""

from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any


def _load() -> Any:
    package = find_spec("crc32c")
    found = None if package is None else PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if found is None or found.loader is None:
        return import_module("crc32c")
    extension = module_from_spec(found)
    found.loader.exec_module(extension)
    return extension


if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = _load().crc32c

__all__ = ["crc32c"]
