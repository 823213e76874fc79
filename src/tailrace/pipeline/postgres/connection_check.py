"""A check that the database can be reached, made before Spark is started."""

from importlib.util import find_spec
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

CONNECT_TIMEOUT_S: Final = 10


def demand_database(dsn: str) -> None:
    """Raise `PipelineFailed` when psycopg is not installed, or when connecting to the database fails."""
    if find_spec("psycopg") is None:
        raise PipelineFailed("this sink needs psycopg, which is not installed: pip install 'tailrace[postgres]'")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        waits = {"connect_timeout": CONNECT_TIMEOUT_S} if "connect_timeout" not in conninfo_to_dict(dsn) else {}
        psycopg.connect(dsn, **waits).close()
    except psycopg.Error as error:
        why = " ".join(str(error).split()).rstrip(".?")
        raise PipelineFailed(f"no PostgreSQL by --dsn (or TAILRACE_POSTGRES): {why}") from None
