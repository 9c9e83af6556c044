"""What a table is hydrated into, as its user names it.

sqlite:PATH, *.db, *.sqlite, *.sqlite3     a table in a SQLite file
duckdb:PATH, *.duckdb                      a table in a DuckDB file
any other path                             a file of JSON lines

Another scheme and the ending of another format are refused, so that no JSON lines are in a file of that name. A file
that is there and is something else is not replaced: a database whose name ends otherwise, a script, a segment.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lithify.errors import RefusedError


class Kind(Enum):
    """What is at the path."""

    LINES = "a file of JSON lines"
    SQLITE = "a SQLite file"
    DUCKDB = "a DuckDB file"


_SCHEMES = {Kind.SQLITE: "sqlite:", Kind.DUCKDB: "duckdb:"}
_ENDINGS = {Kind.SQLITE: (".db", ".sqlite", ".sqlite3"), Kind.DUCKDB: (".duckdb",)}
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]+:")
_OTHER_ENDINGS = (".parquet", ".csv", ".tsv", ".avro", ".orc", ".arrow", ".feather", ".xlsx")


@dataclass(frozen=True, slots=True)
class Target:
    """`path` is the file's, links followed."""

    kind: Kind
    path: Path

    @property
    def keeps_position(self) -> bool:
        """Whether a later run continues in it."""
        return self.kind is not Kind.LINES


def parse_target(text: str) -> Target:
    """Raises `RefusedError` for what cannot be one."""
    kind, path = _kind_and_path(text)
    if path == ":memory:":
        raise RefusedError(f"{text!r} would be lost at the end of the program", hint="give the path of a file")
    if path in ("", "-") or path.endswith("/") or "://" in path:
        raise RefusedError(
            f"{text!r} is not the path of a file",
            hint="give sqlite:PATH, duckdb:PATH, or the path of a file of JSON lines",
        )
    if kind is Kind.LINES and (other := _OTHER_SCHEME.match(path)):
        hint = f"give sqlite:PATH or duckdb:PATH; write the path of a file with such a name as ./{path}"
        raise RefusedError(f"{path}: cannot write tables into {other[0][:-1]}", hint=hint)
    if kind is Kind.LINES and path.lower().endswith(_OTHER_ENDINGS):
        ending = Path(path).suffix
        hint = (
            "hydrate into DuckDB and export the table with `COPY ... TO`, or give a file of JSON lines, such as "
            "orders.jsonl"
        )
        raise RefusedError(f"{path}: cannot write {ending} files, only JSON lines, SQLite and DuckDB", hint=hint)
    try:
        file = Path(os.path.realpath(path))
        if file.is_symlink():  # what is left of links in a circle, of which not every Python complains
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if kind is Kind.DUCKDB:
            str(file).encode()  # DuckDB opens no others
        if not file.parent.is_dir():
            raise RefusedError(f"{path}: the folder {file.parent} does not exist", hint="create it first")
        if file.exists() and not file.is_file():
            raise RefusedError(f"{path} is not a file", hint="give a file, or a path that does not exist yet")
        if kind is Kind.LINES and file.exists() and not _has_lines(file):
            hint = "use another file, or remove this one; write a database as sqlite:PATH or duckdb:PATH"
            raise RefusedError(f"{path} exists and is not a file of JSON lines", hint=hint)
    except (OSError, ValueError) as error:  # of names that no file can have, too
        why = error.strerror if isinstance(error, OSError) else error
        raise RefusedError(f"{path} cannot be a file: {why}", hint="use another path") from error
    return Target(kind, file)


def _has_lines(path: Path) -> bool:
    """Whether it may be what an earlier run wrote, or nothing."""
    with path.open("rb") as file:
        return file.read(1) in (b"", b"{")


def _kind_and_path(text: str) -> tuple[Kind, str]:
    for kind, scheme in _SCHEMES.items():
        if text.lower().startswith(scheme):
            return kind, text[len(scheme) :]
    kinds = (kind for kind, endings in _ENDINGS.items() if text.lower().endswith(endings))
    return next(kinds, Kind.LINES), text
