"""Writes the layouts of the package `kafka_protocol` from the specifications in two jars of Kafka.

    python scripts/kafka_layouts.py .venv/jars/kafka-4.3.1/kafka-clients-4.3.1.jar

The tests of Kafka fetch that jar, and kafka-metadata beside it. Of the first only what a gateway serves is taken, in
all versions that it has there. Of the second it is what says how topics are set up.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAYOUTS = ROOT / "src" / "lithify" / "kafka_protocol" / "layouts.json"
METADATA = LAYOUTS.with_name("metadata.json")
SERVED = (*range(4), *range(8, 19), 23, 32, 36, 42, 47, 60, 68, 69)
"""Keys of APIs."""
NOTED = (2, 4, 9, 23, 24, 25)
"""Kinds of records in the metadata log."""
SOURCE = (
    "Layouts of {what}, made by scripts/kafka_layouts.py from the specifications in {jar}. "
    "They are part of Apache Kafka, Copyright The Apache Software Foundation, under the Apache License 2.0."
)
_ZERO = {"bool": False, "string": "", "bytes": "", "records": "", "uuid": "", "float64": 0.0}


def specifications(jar: Path) -> Iterator[dict[str, Any]]:
    """All of the jar: JSON with comments."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/") and name.endswith(".json"):
                yield json.loads(re.sub(r"(?m)(^|\s)//.*$", "", archive.read(name).decode()))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def bounds(versions: str) -> tuple[int, int | None]:
    """`3-5`, `3+` or `3`; None is no bound."""
    first, dash, last = versions.rstrip("+").partition("-")
    return int(first), int(last) if dash else None if versions.endswith("+") else int(first)


def default(field: Mapping[str, Any], kind: str) -> Any:
    """What the field has if nothing is said of it, as JSON."""
    text = field.get("default")
    if kind.startswith("[]"):
        return None if text == "null" else []
    if text in (None, ""):
        return _ZERO.get(kind, 0 if kind[0].islower() else {})
    if text == "null":
        return None
    if kind == "bool":
        return text in (True, "true")
    return int(str(text), 0) if "int" in kind else text


def layout(fields: list[dict[str, Any]], common: Mapping[str, list[dict[str, Any]]]) -> list[list[Any]]:
    """Fields as lists: name, type, first and last version, default, and what only some have."""
    rows = []
    for field in fields:
        kind = field["type"]
        first, last = bounds(field["versions"])
        structure = kind.removeprefix("[]")
        more: dict[str, Any] = {}
        if "nullableVersions" in field:
            more["nullable"] = bounds(field["nullableVersions"])[0]
        if "tag" in field:
            assert bounds(field["taggedVersions"])[0] == first, f"{field['name']} is not always tagged"
            more["tag"] = field["tag"]
        if structure[0].isupper():
            more["fields"] = layout(field.get("fields") or common[structure], common)
        plain = kind.replace(structure, "struct") if structure[0].isupper() else kind
        rows.append([snake(field["name"]), plain, first, last, default(field, kind), *([more] if more else [])])
    return rows


def layouts(jar: Path) -> dict[str, Any]:
    """By key: the name, versions, and the fields of request and response."""
    found: dict[int, dict[str, Any]] = {key: {} for key in SERVED}
    for one in specifications(jar):
        if one["type"] in ("request", "response") and one["apiKey"] in found:
            api = found[one["apiKey"]]
            common = {structure["name"]: structure["fields"] for structure in one.get("commonStructs", ())}
            flexible = one["flexibleVersions"]
            api["name"] = one["name"].removesuffix("Request").removesuffix("Response")
            api["versions"] = bounds(one["validVersions"])
            api["flexible"] = None if flexible == "none" else bounds(flexible)[0]
            api[one["type"]] = layout(one["fields"], common)
    return {str(key): api for key, api in found.items()}


def metadata_layouts(jar: Path) -> dict[str, Any]:
    """By kind of record: the name, versions and fields."""
    found = {one["apiKey"]: one for one in specifications(jar) if one["type"] == "metadata"}
    return {
        str(kind): {
            "name": found[kind]["name"],
            "versions": bounds(found[kind]["validVersions"]),
            "fields": layout(found[kind]["fields"], {}),
        }
        for kind in NOTED
    }


def written(jar: Path) -> str:
    """The file of requests and responses."""
    return _written(SOURCE.format(what="requests and responses", jar=jar.name), layouts(jar))


def metadata_written(jar: Path) -> str:
    """The file of records in the metadata log."""
    return _written(SOURCE.format(what="records of the metadata log", jar=jar.name), metadata_layouts(jar))


def _written(source: str, table: Mapping[str, Any]) -> str:
    """A line for each list of fields."""
    lines = [f'{{"source": {json.dumps(source)}']
    for key, api in table.items():
        inner = ",\n  ".join(f'"{name}": {json.dumps(api[name], separators=(",", ":"))}' for name in sorted(api))
        lines.append(f'"{key}": {{\n  {inner}\n}}')
    return ",\n".join(lines) + "\n}\n"


def metadata_jar(jar: Path) -> Path:
    """The one beside the jar of the clients."""
    return jar.with_name(jar.name.replace("clients", "metadata"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jar", type=Path, help="kafka-clients-VERSION.jar")
    jar = parser.parse_args().jar
    LAYOUTS.write_text(written(jar), "utf-8")
    METADATA.write_text(metadata_written(metadata_jar(jar)), "utf-8")


if __name__ == "__main__":
    main()
