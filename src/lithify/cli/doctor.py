"""`lithify doctor`: what Lithify needs, what is missing, and how to get it. Starts no Spark."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import fields, print_json, show, styled
from lithify.errors import LithifyError
from lithify.model.settings.units import format_bytes
from lithify.reports.tables.wording import plural

SOMETHING_MISSING = 3
LEAST_PYTHON, FIRST_PYTHON_BEYOND = (3, 11), (3, 14)
LITTLE_SPACE_BYTES = 2**30

LIBRARIES = ("duckdb", "pyarrow", "pyiceberg")


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `hint` says what to do if it is not `ok`."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@verb("doctor")
def doctor(invocation: Invocation) -> int:
    """Check Python, Java, Spark, the jars for Kafka and Pulsar, the catalog and the warehouse.

    Prints what is there, what is missing and how to get it; exit code 3 if something is missing.
    Starts nothing and changes nothing.

    \b
    Examples:
      lithify doctor
      lithify doctor --warehouse /data/lake --json
    """
    checks = [_python(), _java(), _package("Spark", "pyspark"), _libraries(), _connector(), _pulsars_jars()]
    checks.append(_catalog(invocation))
    checks += _warehouse(invocation)
    missing = [check for check in checks if not check.ok]
    if invocation.json:
        print_json({"ok": not missing, "checks": [asdict(check) for check in checks]})
    else:
        show(_lines(checks))
    return SOMETHING_MISSING if missing else 0


def _lines(checks: list[Check]) -> Iterator[str]:
    good, bad = styled("ok     ", fg="green"), styled("MISSING", fg="red", bold=True)
    texts = fields([(c.name, c.detail + (f"; {c.hint}" if c.hint else "")) for c in checks], indent=" " * 9)
    signs = iter([good if check.ok else bad for check in checks])
    for text in texts:
        begins = text[9:10] != " "  # the others continue the line before
        yield f"{next(signs)}  {text[9:]}" if begins else text


def _python() -> Check:
    sound = LEAST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_BEYOND
    hint = "" if sound else "use Python 3.11, 3.12 or 3.13"
    return Check("Python", sound, f"{platform.python_version()} at {sys.executable}", hint)


def _java() -> Check:
    from lithify.spark.session.java import find_java

    try:
        java = find_java()
    except LithifyError as error:
        return Check("Java", False, error.message, error.hint)
    return Check("Java", True, f"{java.version} from {java.origin}, {java.executable}")


def _package(name: str, package: str) -> Check:
    try:
        return Check(name, True, f"{package} {version(package)}")
    except PackageNotFoundError:
        return Check(name, False, f"{package} is not installed", "install Lithify again with its requirements")


def _libraries() -> Check:
    found = [_package("libraries", package) for package in LIBRARIES]
    missing = [check for check in found if not check.ok]
    return missing[0] if missing else Check("libraries", True, ", ".join(check.detail for check in found))


def _connector() -> Check:
    """Kafka's client for Python, and Spark's connector; without a folder the first `kafka ingest` fetches that."""
    from lithify.kafka_client.client import client
    from lithify.spark.kafka.connector import NEEDED, checked, find_connector
    from lithify.spark.kafka.fetched import fetched_folder

    found = find_connector()
    try:
        client()
        note = "" if found.folder is None else checked(found)
    except LithifyError as error:
        return Check("Kafka", False, error.message, error.hint)
    if found.folder is None:
        there = fetched_folder(found.package)
        when = (
            f"in {there}" if (there.parent / "complete").exists() else "fetched from Maven by the first `kafka ingest`"
        )
        return Check("Kafka", True, f"{found.package}, {when}")
    return Check("Kafka", True, note or f"{', '.join(NEEDED)} in {found.folder}")


def _pulsars_jars() -> Check:
    """Pulsar's jars, which only `pulsar compact` needs."""
    from lithify.spark.pulsar.ledgers import JARS_VARIABLE, find_parts

    if not os.environ.get(JARS_VARIABLE):
        return Check("Pulsar", True, f"no jars named; `pulsar compact` needs --jars or {JARS_VARIABLE}")
    try:
        parts = find_parts(None)
    except LithifyError as error:
        return Check("Pulsar", False, error.message, error.hint)
    return Check("Pulsar", True, f"BookKeeper's and Pulsar's clients in {parts.pulsar_jars}")


def _catalog(invocation: Invocation) -> Check:
    try:
        topics = invocation.open_lake().topics()
    except LithifyError as error:
        return Check("catalog", False, error.message, error.hint)
    return Check("catalog", True, plural(len(topics), "topic"))


def _warehouse(invocation: Invocation) -> list[Check]:
    """Whether a local warehouse can be written to and has room; the catalog answers for others."""
    from lithify.wiring.place import default_place

    given, catalog = invocation.warehouse, invocation.catalog
    if given is None and catalog is None:
        try:
            given, catalog = default_place()
        except LithifyError:  # `_catalog` says it
            return []
    if given is None or catalog is not None:
        return []
    folder = Path(given.removeprefix("file://")).expanduser().absolute()
    there = folder.exists()
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
        free = shutil.disk_usage(place).free
    except OSError as error:
        detail = f"{folder} cannot be written: {error.strerror}"
        return [Check("warehouse", False, detail, "make it writable for this user, or name another with --warehouse")]
    room = free >= LITTLE_SPACE_BYTES
    return [
        Check("warehouse", True, f"{folder}, {'writable' if there else 'made with the first topic'}"),
        Check("free space", room, format_bytes(free), "" if room else "a round needs space for the segments it writes"),
    ]
