"""Python imports this module when it starts, if this folder is on the PYTHONPATH: see `crash_places`."""

from tests.pipeline import crash_places

crash_places.install()
