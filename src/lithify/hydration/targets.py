"""What a table is hydrated into, as its user names it.

sqlite:PATH, *.db, *.sqlite, *.sqlite3     a table in a SQLite file
duckdb:PATH, *.duckdb                      a table in a DuckDB file
any other                                  a file of JSON lines
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Target:
    """`path` is that of the file, links followed."""

    kind: Kind
    path: Path

    @property
    def keeps_position(self) -> bool:
        """Whether a later run continues in it."""
        return self.kind is not Kind.LINES


def parse_target(text: str) -> Target:
    """Raises `RefusedError` for what cannot be one."""
    kind, path = _kind_and_path(text)
    if not path or path.endswith("/"):
        raise RefusedError(f"{text!r} names no file", hint="sqlite:PATH, duckdb:PATH, or the path of a file")
    found = Path(path).resolve()
    if not found.parent.is_dir():
        raise RefusedError(f"{path}: there is no folder {found.parent}", hint="create it first")
    if found.exists() and not found.is_file():
        raise RefusedError(f"{path} is not a file", hint="name a file, or one that is not there yet")
    return Target(kind, found)


def _kind_and_path(text: str) -> tuple[Kind, str]:
    for kind, scheme in _SCHEMES.items():
        if text.startswith(scheme):
            return kind, text.removeprefix(scheme)
    kinds = (kind for kind, endings in _ENDINGS.items() if text.lower().endswith(endings))
    return next(kinds, Kind.LINES), text
