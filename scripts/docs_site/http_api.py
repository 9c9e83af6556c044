"""The page of a gateway's HTTP API, from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PLACE = "reference/http-api.md"
METHODS = ("get", "put", "post", "delete", "patch")

Schema = Mapping[str, Any]


def page(document: Schema) -> str:
    """The text of the page, for an OpenAPI 3 document."""
    info = document["info"]
    said = f"\n{info['description'].strip()}\n" if info.get("description") else ""
    opening = f"# The HTTP API\n\nMade from `/openapi.json` of a gateway, version {info['version']}.\n{said}"
    schemas = {**document.get("components", {}).get("schemas", {}), **dict(_definitions(document))}
    values = "".join(_schema(name, schemas[name]) for name in sorted(schemas, key=str.lower))
    return opening + "".join(_operations(document)) + (f"\n## Values\n{values}" if values else "")


def _definitions(place: object) -> Iterator[tuple[str, Schema]]:
    """Schemas that stand beside their use, by name."""
    if isinstance(place, Mapping):
        yield from place.get("$defs", {}).items()
    if isinstance(place, Mapping | list):
        for one in place.values() if isinstance(place, Mapping) else place:
            yield from _definitions(one)


def _operations(document: Schema) -> Iterator[str]:
    for path, at_path in document["paths"].items():
        for method in METHODS:
            if operation := at_path.get(method):
                yield _operation(f"{method.upper()} {path}", operation, at_path.get("parameters", ()))


def _operation(heading: str, operation: Schema, shared: Any) -> str:
    lines = [f"\n## {heading}\n"]
    lines += [f"{operation[key].strip()}\n" for key in ("summary", "description") if operation.get(key)]
    if parameters := [*shared, *operation.get("parameters", ())]:
        lines += ["| parameter | in | type | |", "| --- | --- | --- | --- |", *map(_parameter, parameters), ""]
    if body := operation.get("requestBody"):
        lines.append(f"Body: {_contents(body)}.\n")
    if answers := operation.get("responses"):
        lines += ["| status | answer | |", "| --- | --- | --- |"]
        lines += [
            f"| {code} | {_contents(one)} | {_cell(one.get('description', ''))} |" for code, one in answers.items()
        ]
        lines.append("")
    return "\n".join(lines)


def _parameter(parameter: Schema) -> str:
    needed = "" if parameter.get("required") else ", optional"
    kind = _type(parameter.get("schema", {}))
    said = _cell(parameter.get("description", ""))
    return f"| `{parameter.get('name', _name(parameter))}` | {parameter.get('in', '')} | {kind}{needed} | {said} |"


def _contents(holder: Schema) -> str:
    kinds = holder.get("content", {})
    return ", ".join(f"`{media}` {_type(one.get('schema', {}))}".strip() for media, one in kinds.items()) or "nothing"


def _schema(name: str, schema: Schema) -> str:
    said = f"\n{schema['description'].strip()}\n" if schema.get("description") else ""
    rows = [
        f"| `{field}` | {_type(one)}{'' if field in schema.get('required', ()) else ', optional'} "
        f"| {_cell(one.get('description', ''))} |\n"
        for field, one in schema.get("properties", {}).items()
    ]
    table = "\n| field | type | |\n| --- | --- | --- |\n" + "".join(rows) if rows else f"\n{_type(schema)}\n"
    return f"\n### {name}\n{said}{table}"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return f"[{_name(schema)}](#{_name(schema).lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if fields := schema.get("properties"):
        return "object of " + ", ".join(f"`{name}` ({_type(one)})" for name, one in fields.items())
    if isinstance(schema.get("additionalProperties"), Mapping) and schema["additionalProperties"]:
        return f"object with values: {_type(schema['additionalProperties'])}"
    kind = schema.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _name(reference: Schema) -> str:
    return str(reference.get("$ref", "")).rpartition("/")[2]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
