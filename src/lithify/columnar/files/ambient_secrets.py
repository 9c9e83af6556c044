"""Secrets that clients of stores, catalogs and databases take by themselves from the environment and from files.

Lithify passes none of them on, but a library may repeat one: no text of this process shows them. What is not there or
cannot be read has none; its reader says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from lithify.errors.redaction import keep_secret
from lithify.model.settings.secrets import is_secret, keep, keep_login

_READ = re.compile(r"(AWS|AZURE|GOOGLE|PG|PYICEBERG|LITHIFY)_?|.*_PROXY$", re.I)
"""Beginnings of variables that are read by PyIceberg, Arrow, libpq and Lithify, and of variables for proxies."""
_SETTINGS = (
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("AWS_CONFIG_FILE", "~/.aws/config"),
    ("PGSERVICEFILE", "~/.pg_service.conf"),
)
_PG_PASSES = ("PGPASSFILE", "~/.pgpass")
_NETRC = ("NETRC", "~/.netrc")
_SETTING = re.compile(r"^[ \t]*+([\w.-]++)[ \t]*+[=:][ \t]*+(.*\S)", re.M)
_PASS = re.compile(r"(?:(?:\\.|[^\\:\n])*+:){4}(.*\S)")
"""Of a line `host:port:database:user:password`, in which ':' and '\\' are escaped."""
_OF_A_MACHINE = re.compile(r"(?:\blogin\s+(\S+)\s+(?:account\s+\S+\s+)?)?\bpassword\s+(\S+)")
_MOST_BYTES = 2**20
_MOST = 150
"""Secrets of a file that are kept."""


def keep_ambient_secrets() -> None:
    keep({name: _as_url(name, value) for name, value in os.environ.items() if _READ.match(name)})
    for secrets in (*(_settings(_text(*place)) for place in _SETTINGS), _passes()):
        for secret in islice(secrets, _MOST):
            keep_secret(secret)
    for user, password in _OF_A_MACHINE.findall(_text(*_NETRC))[:_MOST]:
        keep_login(user, password)


def _as_url(name: str, value: str) -> str:
    """A proxy may be written without a scheme."""
    return f"http://{value}" if name.upper().endswith("_PROXY") and "://" not in value else value


def _text(variable: str, default: str) -> str:
    """The beginning of a file that the variable names; empty for a pipe, which can be read once."""
    with suppress(OSError, RuntimeError, ValueError):  # no home folder, no such file
        path = Path(os.environ.get(variable) or default).expanduser()
        if path.is_file():
            with path.open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8-sig", errors="replace")  # a comment may have anything
    return ""


def _settings(text: str) -> Iterator[str]:
    return (value for name, value in _SETTING.findall(text) if is_secret(name))


def _passes() -> Iterator[str]:
    lines = (line for line in _text(*_PG_PASSES).splitlines() if not line.startswith("#"))
    return (re.sub(r"\\(.)", r"\1", match[1]) for match in map(_PASS.match, lines) if match)
