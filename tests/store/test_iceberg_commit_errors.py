"""Errors of a commit: which are conflicts, which never landed, and which leave the outcome open (C6)."""

from __future__ import annotations

from pathlib import Path

import psycopg2
import pytest
import requests
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from lithify.errors import WarehouseError
from lithify.store.iceberg.error_mapping import moved_on, never_landed, warehouse_error

CLOSED = "server closed the connection unexpectedly"
REFUSED = 'connection to server at "db", port 5432 failed: Connection refused'
UPDATE = "UPDATE iceberg_tables SET metadata_location=%(a)s"
AT_COMMIT = None
"""SQLAlchemy has no statement for a COMMIT."""


class Serialization(psycopg2.OperationalError):
    """As PostgreSQL takes a transaction back for another one."""

    pgcode = "40001"


def failed(statement: str | None, original: psycopg2.Error) -> DBAPIError:
    return OperationalError(statement, {}, original)


@pytest.mark.parametrize(
    ("error", "conflict", "nothing_landed"),
    [
        (CommitFailedException("main has moved"), True, False),
        (failed(AT_COMMIT, Serialization("could not serialize access")), True, False),
        (failed(UPDATE, Serialization("could not serialize access")), True, True),
        (failed(UPDATE, psycopg2.OperationalError(CLOSED)), False, True),
        (failed(AT_COMMIT, psycopg2.OperationalError(REFUSED)), False, True),
        (failed(AT_COMMIT, psycopg2.OperationalError(CLOSED)), False, False),
        (PoolTimeoutError("QueuePool limit of size 5 overflow 10 reached"), False, True),
        (WarehouseError("s3://bucket/metadata.json cannot be reached"), False, True),
        (requests.ConnectionError("Connection aborted."), False, False),
        (TimeoutError("the answer was lost"), False, False),
    ],
)
def test_what_an_error_of_a_commit_says(error: Exception, conflict: bool, nothing_landed: bool) -> None:
    assert moved_on(error) is conflict
    assert never_landed(error) is nothing_landed


@pytest.mark.parametrize(
    ("error", "text", "hint"),
    [
        (
            OSError(
                "When reading information for key 'k' in bucket 'b': AWS Error ACCESS_DENIED during HeadObject "
                "operation: No response body."
            ),
            "s3://b/k: access to it is refused",
            "credentials",
        ),
        (
            OSError("AWS Error NO_SUCH_BUCKET during PutObject operation: The specified bucket does not exist"),
            "s3://b/k: there is no such bucket",
            "create it",
        ),
        (
            OSError("When uploading part: AWS Error UNKNOWN (HTTP status 503) during UploadPart operation: busy\n."),
            "s3://b/k cannot be reached: UNKNOWN (HTTP status 503) during UploadPart: busy .",
            "try again",
        ),
        (
            failed(UPDATE, psycopg2.OperationalError(f"{CLOSED}\n")),
            f"s3://b/k cannot be reached: {CLOSED}",
            "try again",
        ),
        (WarehouseError("what it says", hint="already"), "what it says", "already"),
    ],
)
def test_what_the_message_says(error: Exception, text: str, hint: str) -> None:
    told = warehouse_error("s3://b/k", error)

    assert told.message == text
    assert hint in told.hint


def test_a_catalog_that_is_moved_away_while_it_is_used_is_not_said_to_be_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    engine = create_engine(f"sqlite:///{folder}/catalog.db")
    with pytest.raises(OperationalError) as failure, engine.connect() as connection:
        connection.execute(text("CREATE TABLE topics (name TEXT)"))
        connection.commit()
        folder.rename(tmp_path / "elsewhere")
        connection.execute(text("INSERT INTO topics VALUES ('orders')"))
    error = warehouse_error("lake", failure.value)
    assert (error.message, error.hint) == (
        "lake: its catalog.db was moved or deleted while it was used",
        "bring it back to where it was, or mount its disk, then try again; nothing was changed",
    )
    assert never_landed(failure.value)
