"""Records in and out, as the OpenAPI description has them."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from lithify.gateway.operations.operation import Operation
from lithify.gateway.operations.records import APPEND, ARROW, LINES, READ, TABLE
from lithify.gateway.server.described import needs_role, path_parameters
from lithify.gateway.server.records.arguments import AppendQuery, ReadQuery, TableQuery, Text

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Of this append alone: sent again with the same key, it gets the first answer.",
    "schema": {"type": "string", "maxLength": 255},
}
_BODIES = {
    LINES: {"schema": {"type": "string"}, "example": '{"key":"k","value":"v"}\n'},
    ARROW: {"schema": {"type": "string", "format": "binary"}},
}
_RANGE = {name: {"type": "integer"} for name in ("partition", "start_offset", "end_offset", "records")}
_APPENDED = {
    "type": "object",
    "properties": {
        "topic": {"type": "string"},
        "version": {"type": "integer"},
        "ranges": {"type": "array", "items": {"type": "object", "properties": _RANGE}},
        "records": {"type": "integer"},
    },
}
_NEXT = {
    "Link": {"description": "With max: the next page.", "schema": {"type": "string"}},
    "Lithify-Cursor": {"description": "With max: where the next page begins.", "schema": {"type": "string"}},
}


def records_paths() -> dict[str, dict[str, Any]]:
    """By path, the operations by method."""
    append = _described(APPEND, AppendQuery, {"application/json": {"schema": _APPENDED}})
    append["parameters"].append(_KEY)
    append["requestBody"] = {"required": True, "content": _BODIES}
    read = _described(READ, ReadQuery, _BODIES)
    read["responses"]["200"]["headers"] = _NEXT
    table = _described(TABLE, TableQuery, _BODIES)
    return {APPEND.path: {"post": append, "get": read}, TABLE.path: {"get": table}}


def _described(one: Operation, query: type[Text], content: dict[str, Any]) -> dict[str, Any]:
    properties = msgspec.json.schema_components([query])[1][query.__name__]["properties"]
    return {
        "operationId": one.name,
        "summary": (inspect.getdoc(one.function()) or "").partition("\n")[0],
        "description": needs_role(one),
        "parameters": [
            *path_parameters(one.path),
            *({"name": name, "in": "query", "schema": schema} for name, schema in properties.items()),
        ],
        "responses": {"200": {"description": "Done.", "content": content}},
    }
