"""Errors of a commit: which are conflicts, which never landed, and which leave the outcome open (C6)."""

from __future__ import annotations

from pathlib import Path

import psycopg2
import pytest
import requests
from pyiceberg.exceptions import CommitFailedException, ServerError, ServiceUnavailableError, UnauthorizedError
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
        "move it back, or mount its disk, then try again; nothing was changed",
    )
    assert never_landed(failure.value)


HEAD = "When getting information for key 'x' in bucket 'b': AWS Error {} during HeadObject operation: {}"
POOL = "HTTPConnectionPool(host='rest', port=8181): Max retries exceeded with url: /v1/config (Caused by {})"


def refused(text: str) -> DBAPIError:
    return failed(None, psycopg2.OperationalError(f'connection to server at "db", port 5432 failed: {text}'))


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (refused("Connection refused\n\tIs the server running on that host?"), True),
        (refused("FATAL:  the database system is starting up"), True),
        (refused("FATAL:  the database system is shutting down"), True),
        (refused("FATAL:  the database system is not yet accepting connections"), True),
        (refused("FATAL:  sorry, too many clients already"), True),
        (refused("Network is unreachable"), True),
        (refused("timeout expired"), True),
        (
            failed(
                None, psycopg2.OperationalError("could not translate host name: Temporary failure in name resolution")
            ),
            True,
        ),
        (
            OperationalError(UPDATE, {}, psycopg2.OperationalError("SSL SYSCALL error"), connection_invalidated=True),
            True,
        ),
        (refused('FATAL:  password authentication failed for user "lithify"'), False),
        (refused("fe_sendauth: no password supplied"), False),
        (refused('FATAL:  database "nowhere" does not exist'), False),
        (refused('FATAL:  no pg_hba.conf entry for host "10.0.0.1"'), False),
        (refused("server does not support SSL, but SSL was required"), False),
        (refused("Connection refused\nconnection to server failed: FATAL:  password authentication failed"), False),
        (failed(None, psycopg2.OperationalError("could not translate host name: Name or service not known")), False),
        (failed(UPDATE, psycopg2.ProgrammingError("permission denied for table iceberg_tables")), False),
        (failed(UPDATE, psycopg2.OperationalError("canceling statement due to statement timeout")), False),
        (requests.ConnectionError(POOL.format("NewConnectionError('[Errno 111] Connection refused')")), True),
        (requests.ConnectTimeout(POOL.format("ConnectTimeoutError('timed out')")), True),
        (requests.ReadTimeout("no whole answer within 60 s"), True),
        (ServiceUnavailableError("ServiceUnavailableError: RestError: Service Unavailable"), True),
        (ServerError("RESTError 502: Could not decode json payload: <html>"), True),
        (requests.ConnectionError(POOL.format("NameResolutionError('[Errno -2] Name or service not known')")), False),
        (requests.exceptions.SSLError(POOL.format("SSLCertVerificationError('self-signed certificate')")), False),
        (requests.exceptions.InvalidURL("no host"), False),
        (UnauthorizedError("NotAuthorizedException: wrong token"), False),
        (ServerError("RESTError 500: a defect"), False),
        (OSError(HEAD.format("NETWORK_CONNECTION", "curlCode: 7, Could not connect to server")), True),
        (OSError(HEAD.format("SLOW_DOWN", "please reduce your request rate")), True),
        (OSError(HEAD.format("UNKNOWN (HTTP status 503)", "no body")), True),
        (OSError(HEAD.format("NETWORK_CONNECTION", "curlCode: 6, Could not resolve hostname")), False),
        (OSError(HEAD.format("NETWORK_CONNECTION", "curlCode: 60, SSL peer certificate was not OK")), False),
        (OSError(HEAD.format("ACCESS_DENIED", "no")), False),
        (ModuleNotFoundError("No module named 'psycopg2'", name="psycopg2"), False),
        (TimeoutError("no whole answer within 60 s"), True),
        (ValueError("a defect"), False),
    ],
)
def test_what_may_pass_by_itself_is_an_outage(error: Exception, passes: bool) -> None:
    found = warehouse_error("catalog prod", error)
    assert found.is_outage is passes
    assert warehouse_error("catalog prod", found).is_outage is passes
