"""Checks PyIceberg's own file of catalogs before PyIceberg reads it, which it does when it is imported.

PyIceberg's errors name neither the file nor the remedy, and show the line, which may have a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lithify.errors import UnusableEnvironmentError, WarehouseError
from lithify.model.settings.secrets import keep

_HOME, _FILE, _VARIABLES = "PYICEBERG_HOME", ".pyiceberg.yaml", "pyiceberg_"
"""Where PyIceberg is described: the folder and name of a file, and how variables begin in any case."""

WAREHOUSE = "warehouse"
"""The property of a catalog that says where it keeps files."""
_WITH_USER = re.compile(r"s3[an]?://[^/]*[@:]", re.I)  # no bucket has a colon in its name, and a secret key has slashes


def check_configuration() -> None:
    """Raises `WarehouseError` for a `.pyiceberg.yaml`, or variables in its place, that PyIceberg cannot read."""
    try:
        if not _describes_any():
            return  # without importing PyIceberg, which takes a third of a second
        from pyiceberg.utils.config import Config

        Config()
    except Exception as error:  # of the YAML parser, of decoding, of the disk, or of an unexpected structure
        if isinstance(error, FileNotFoundError) and error.filename is None:  # of no file: it looks in `os.getcwd()`
            raise UnusableEnvironmentError(
                "the folder that this program runs in no longer exists",
                hint="change to an existing folder and try again",
            ) from error
        raise WarehouseError(
            f"{_file() or 'the variables PYICEBERG_...'}: PyIceberg cannot read its configuration: {_why(error)}",
            hint="correct or remove it; PyIceberg reads it for every warehouse",
        ) from error


def check_described(catalog: Mapping[str, Any]) -> None:
    """Keeps the secrets of a catalog's properties out of all texts.

    Raises `WarehouseError` for credentials in the address of its bucket: every path in it would have them.
    """
    keep(catalog)
    if _WITH_USER.match(str(catalog.get(WAREHOUSE, ""))):
        raise WarehouseError(
            "the address of the warehouse has credentials before its bucket",
            hint="write s3://BUCKET/PATH, and set s3.access-key-id and s3.secret-access-key as properties of the "
            "catalog",
        )


def _describes_any() -> bool:
    """Whether there is anything that PyIceberg reads, looked for as it does (`os.path`).

    Raises `FileNotFoundError` if there is no working folder.
    """
    if any(name.lower().startswith(_VARIABLES) for name in os.environ):  # one of them names another folder
        return True
    folders = (os.path.expanduser("~"), os.getcwd())  # noqa: PTH109, PTH111
    return any(os.path.isfile(os.path.join(folder, _FILE)) for folder in folders)  # noqa: PTH113, PTH118


def _file() -> Path | None:
    """The file that PyIceberg reads: the first that exists."""
    folders = (os.environ.get(_HOME), Path("~").expanduser(), Path())
    files = (Path(folder).absolute() / _FILE for folder in folders if folder)
    return next((file for file in files if file.is_file()), None)


def _why(error: Exception) -> str:
    """The reason, never with the text of the file."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    mark = getattr(error, "problem_mark", None)  # as every error of YAML has it
    if mark is not None:
        return f"line {mark.line + 1} is not strict YAML"
    return "it is not UTF-8" if isinstance(error, UnicodeError) else "it does not describe catalogs by name"
