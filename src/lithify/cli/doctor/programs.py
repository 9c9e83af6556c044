"""Python, Java, Spark and libraries: what every verb, or every round, runs on."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from lithify.cli.doctor.check import Check
from lithify.errors import LithifyError

LEAST_PYTHON, FIRST_PYTHON_BEYOND = (3, 11), (3, 14)

LIBRARIES = ("duckdb", "pyarrow", "pyiceberg")


def python() -> Check:
    sound = LEAST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_BEYOND
    hint = "" if sound else "use Python 3.11, 3.12 or 3.13"
    return Check("Python", sound, f"{platform.python_version()} at {sys.executable}", hint)


def java() -> Check:
    from lithify.spark.session.java import find_java

    try:
        found = find_java()
    except LithifyError as error:
        return Check("Java", False, error.message, error.hint)
    return Check("Java", True, f"{found.version} from {found.origin}, {found.executable}")


def package(name: str, package_name: str) -> Check:
    try:
        return Check(name, True, f"{package_name} {version(package_name)}")
    except PackageNotFoundError:
        return Check(name, False, f"{package_name} is not installed", "install Lithify again with its requirements")


def libraries() -> Check:
    found = [package("libraries", name) for name in LIBRARIES]
    missing = [check for check in found if not check.ok]
    return missing[0] if missing else Check("libraries", True, ", ".join(check.detail for check in found))
