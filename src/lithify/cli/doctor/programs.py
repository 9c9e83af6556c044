"""Python, Java, Spark and libraries: what every verb, or every round, runs on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lithify.cli.doctor.check import Check
from lithify.errors import LithifyError
from lithify.errors.redaction import one_line

LEAST_PYTHON, FIRST_PYTHON_BEYOND = (3, 11), (3, 14)

_INSTALL = "install Lithify again with its requirements"
_SHOWN_CHARACTERS = 200

LIBRARIES = ("duckdb", "pyarrow", "pyiceberg")


def python() -> Check:
    interpreter = f"{platform.python_version()} at {sys.executable}"
    if not LEAST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_BEYOND:
        return Check("Python", False, interpreter, "use Python 3.11, 3.12 or 3.13")
    if strange := next(_in_place_of_others(), None):
        detail = f"{interpreter}, which imports {strange} in place of its own {strange.stem} or the library's"
        return Check("Python", False, detail, "rename it, or remove its folder from PYTHONPATH")
    return Check("Python", True, interpreter)


def _in_place_of_others() -> Iterator[Path]:
    """Modules of PYTHONPATH that are imported in place of modules of the same name that everything else needs."""
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        for name in sorted({*sys.stdlib_module_names, *LIBRARIES}):
            module = Path(folder, f"{name}.py")
            if os.path.isfile(module):  # noqa: PTH113 - False for whatever cannot be looked at
                yield module


def java() -> Check:
    from lithify.spark.session.java import find_java

    try:
        runtime = find_java()
    except LithifyError as error:
        return Check("Java", False, error.message, error.hint)
    return Check("Java", True, f"{runtime.version} from {runtime.origin}, {runtime.executable}")


def package(name: str, package_name: str) -> Check:
    """Whether it is installed, and can be imported: a library of another system may be there and useless."""
    try:
        release = f"{package_name} {version(package_name)}"
    except PackageNotFoundError:
        return Check(name, False, f"{package_name} is not installed", _INSTALL)
    try:
        import_module(package_name)
    except Exception as error:
        return cannot_be_used(name, f"{release} cannot be imported", error)
    return Check(name, True, release)


def cannot_be_used(name: str, what: str, error: Exception) -> Check:
    return Check(name, False, f"{what}: {type(error).__name__}: {one_line(str(error), _SHOWN_CHARACTERS)}", _INSTALL)


def libraries() -> Check:
    checks = [package("libraries", name) for name in LIBRARIES]
    missing = [check for check in checks if not check.ok]
    return missing[0] if missing else Check("libraries", True, ", ".join(check.detail for check in checks))
