"""`lithify doctor`: what Lithify needs, what is missing, and how to get it. Starts no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from lithify.cli.doctor.check import Check
from lithify.cli.doctor.clients import AIOKAFKA, aiokafka, gateway, kafka, postgres, pulsars_jars
from lithify.cli.doctor.places import places
from lithify.cli.doctor.programs import cannot_be_used, java, libraries, package, python
from lithify.cli.doctor.python_of_executors import executors
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.drawing import fields, styled
from lithify.cli.terminal.output import print_json, show
from lithify.errors.redaction import redacted

SOMETHING_MISSING = 3


@verb("doctor")
def doctor(invocation: Invocation) -> int:
    """Check Python, Java, Spark, the Python of executors, the jars for Kafka and Pulsar, the catalog and its files.

    Prints what is there, what is missing and how to get it; exit code 3 if something is missing or does not work.
    Optional parts that are absent do not count. Starts nothing. In an object store behind --catalog it
    writes, reads and deletes one small file.

    \b
    Examples:
      lithify doctor
      lithify doctor --warehouse /data/lake --json
      lithify doctor --catalog prod
    """
    checks = [_check_of(name, look) for name, look in _PARTS.items()]
    checks += _places(invocation)
    sound = all(check.ok or check.optional for check in checks)
    if invocation.json:
        print_json({"ok": sound, "checks": [_json_of(check) for check in checks]})
    else:
        show(_lines(checks))
    return 0 if sound else SOMETHING_MISSING


_PARTS: Mapping[str, Callable[[], Check]] = {
    "Python": python,
    "Java": java,
    "Spark": partial(package, "Spark", "pyspark"),
    "libraries": libraries,
    "executors": executors,
    "Kafka": kafka,
    AIOKAFKA: aiokafka,
    "Pulsar": pulsars_jars,
    "PostgreSQL": postgres,
    "gateway": gateway,
}


def _check_of(name: str, look: Callable[[], Check]) -> Check:
    """The check of a part, even if a library fails in whatever way: the other parts are checked all the same."""
    try:
        return look()
    except Exception as error:
        return cannot_be_used(name, "it cannot be checked", error)


def _places(invocation: Invocation) -> list[Check]:
    try:
        return places(invocation)
    except Exception as error:
        return [cannot_be_used("catalog", "it cannot be checked", error)]


def _json_of(check: Check) -> dict[str, Any]:
    """As JSON, without secrets: for stdout, where results are printed as they are."""
    return asdict(replace(check, detail=redacted(check.detail), hint=redacted(check.hint)))


def _lines(checks: list[Check]) -> Iterator[str]:
    texts = fields([(c.name, c.detail + (f"; {c.hint}" if c.hint else "")) for c in checks], indent=" " * 9)
    signs = map(_sign, checks)
    for text in texts:
        begins = text[9:10] != " "  # the others continue the line before
        yield f"{next(signs)}  {text[9:]}" if begins else text


def _sign(check: Check) -> str:
    if check.ok:
        return styled("ok     ", fg="green")
    return styled("absent ", fg="yellow") if check.optional else styled("PROBLEM", fg="red", bold=True)
