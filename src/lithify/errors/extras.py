"""Optional parts of Lithify, and how each gets into an environment: errors, `doctor` and docs say the same."""

from __future__ import annotations

from importlib.util import find_spec

KAFKA = "`./scripts/setup kafka` in a checkout of Lithify, or `pip install confluent-kafka` elsewhere"
KAFKA_FILES = "`./scripts/setup kafka` in a checkout of Lithify, or `pip install 'aiokafka[lz4,snappy,zstd]'` elsewhere"
GATEWAY = "`./scripts/setup gateway` in a checkout of Lithify, or `pip install 'lithify[gateway]'` elsewhere"
POSTGRES = "`./scripts/setup postgres` in a checkout of Lithify, or `pip install psycopg2-binary` elsewhere"
POSTGRES_URL = f"{POSTGRES}, and write postgresql://"
"""For a URL that may name the other driver."""
POSTGRES_DRIVERS = ("psycopg2", "psycopg")


def postgres_driver() -> str:
    """The driver of PostgreSQL that is installed, for a URL that names none; without any, the one to install."""
    return next((driver for driver in POSTGRES_DRIVERS if find_spec(driver) is not None), POSTGRES_DRIVERS[0])


def lacks_postgres(error: BaseException | None) -> str | None:
    """The driver of PostgreSQL that an error, or what it was made from, says is missing."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name in POSTGRES_DRIVERS:
            return error.name
        error = error.__cause__ or error.__context__
    return None
