"""Optional parts of Lithify, and how each gets into an environment: errors, `doctor` and docs say the same."""

from __future__ import annotations

KAFKA = "`./scripts/setup kafka` in a checkout of Lithify, or `pip install confluent-kafka` elsewhere"
POSTGRES = "`./scripts/setup postgres` in a checkout of Lithify, or `pip install psycopg2-binary` elsewhere"
POSTGRES_DRIVERS = ("psycopg2", "psycopg")


def lacks_postgres(error: BaseException | None) -> str | None:
    """The driver of PostgreSQL that an error, or what it was made from, says is missing."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name in POSTGRES_DRIVERS:
            return error.name
        error = error.__cause__ or error.__context__
    return None
