"""Checks that psycopg is there and that the database can be reached, made before anything is started."""

from importlib.util import find_spec
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

CONNECT_TIMEOUT_S: Final = 10


def demand_psycopg() -> None:
    if find_spec("psycopg") is None:
        raise PipelineFailed("this sink needs psycopg, which is not installed: pip install 'tailrace[postgres]'")


def demand_database(dsn: str) -> None:
    """Raise `PipelineFailed` when psycopg is not installed, or when connecting to the database fails."""
    demand_psycopg()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        waits = {"connect_timeout": CONNECT_TIMEOUT_S} if "connect_timeout" not in conninfo_to_dict(dsn) else {}
        psycopg.connect(dsn, **waits).close()
    except psycopg.Error as error:
        why = " ".join(str(error).split()).rstrip(".?")
        hint = "; `createdb` makes one" if "database" in why and "does not exist" in why else ""
        raise PipelineFailed(f"no PostgreSQL by --dsn (or TAILRACE_POSTGRES): {why}{hint}") from None
