"""The OpenAPI description of the API, made of the table of operations and the types of the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import msgspec

import lithify
from lithify.gateway.operations.operation import Operation
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server.arguments import any_value, arguments_type
from lithify.gateway.server.described import (
    COMPONENTS,
    JOB,
    PAGING,
    SECURITY,
    needs_role,
    other_paths,
    path_parameters,
    with_problems,
)
from lithify.gateway.server.records.described import records_paths

_REF = "#/components/schemas/{name}"


def description() -> dict[str, Any]:
    """The document, as `/openapi.json` serves it."""
    arguments = {one: arguments_type(one) for one in OPERATIONS}
    reports = [kind for one in OPERATIONS if (kind := one.report_class()) is not None]
    distinct = list(dict.fromkeys([*arguments.values(), *reports]))
    schemas, components = msgspec.json.schema_components(distinct, schema_hook=any_value, ref_template=_REF)
    schema_of = dict(zip(distinct, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one, kind in arguments.items():
        in_body = one.changes and bool(msgspec.structs.fields(kind))
        fields = {} if in_body else components.pop(kind.__name__)["properties"]
        described = _described(one, schema_of, schema_of[kind] if in_body else None)
        paging = PAGING if one.many and not one.is_job else ()
        path = next((path for path in paths if _shape(path) == _shape(one.path)), one.path)
        if parameters := [*path_parameters(path), *_in_query(kind, fields), *paging]:
            described["parameters"] = parameters
        paths.setdefault(path, {})[one.method.lower()] = described
    for path, methods in (records_paths() | other_paths()).items():
        paths.setdefault(path, {}).update(methods)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lithify gateway", "version": lithify.__version__},
        "security": [{}, {name: [] for name in SECURITY}],
        "paths": with_problems(paths),
        "components": {"schemas": components | COMPONENTS, "securitySchemes": SECURITY},
    }


def _shape(path: str) -> str:
    """OpenAPI allows no two paths that differ only in the names of their parameters."""
    return re.sub(r"{\w+}", "{}", path)


def _in_query(kind: type[msgspec.Struct], schemas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "in": "query", "required": field.required, "schema": schemas[field.name]}
        for field in msgspec.structs.fields(kind)
        if field.name in schemas
    ]


def _described(one: Operation, schema_of: Mapping[Any, Any], body: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": (inspect.getdoc(one.function()) or "").partition("\n")[0],
        "description": needs_role(one),
        "responses": {"202": {"description": "A job."}} if one.is_job else {"200": {"description": "Done."}},
    }
    if body is not None:
        told["requestBody"] = {"content": {"application/json": {"schema": body}}}
    if (report := one.report_class()) is not None:
        answer = schema_of[report]
        if one.many:
            answer = {"type": "object", "properties": {"items": {"type": "array", "items": answer}}}
        if one.is_job:
            answer = {"allOf": [JOB, {"type": "object", "properties": {"report": answer}}]}
        (response,) = told["responses"].values()
        response["content"] = {"application/json": {"schema": answer}}
    return told
