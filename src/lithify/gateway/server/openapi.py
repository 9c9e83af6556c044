"""The OpenAPI description of the API, made of the table of operations and the types of the Python API."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

import lithify
from lithify.gateway.operations.operation import Operation
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server.arguments import any_value, arguments_type, schema

_REF = "#/components/schemas/{name}"


def description() -> dict[str, Any]:
    """The document, as `/openapi.json` serves it."""
    types = [kind for one in OPERATIONS for kind in (arguments_type(one), one.report_class()) if kind is not None]
    distinct = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(distinct, schema_hook=any_value, ref_template=_REF)
    schema_of = dict(zip(distinct, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lithify gateway", "version": lithify.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _described(one: Operation, schema_of: Mapping[Any, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    kind = arguments_type(one)
    in_path = [name.strip("{}") for name in one.path.split("/") if name.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path
    ]
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": (inspect.getdoc(one.function()) or "").partition("\n")[0],
        "description": f"Needs the role `{one.role}`.",
        "responses": {"202" if one.is_job else "200": {"description": "Done." if not one.is_job else "A job."}},
    }
    fields = msgspec.structs.fields(kind)
    if one.changes and fields:
        told["requestBody"] = {"content": {"application/json": {"schema": schema(kind)}}}
    elif fields:
        parameters += [
            {"name": field.name, "in": "query", "required": field.required, "schema": schema(field.type)}
            for field in fields
        ]
    if (report := one.report_class()) is not None and not one.is_job:
        answer = schema_of[report]
        if one.many:
            answer = {"type": "object", "properties": {"items": {"type": "array", "items": answer}}}
        told["responses"]["200"]["content"] = {"application/json": {"schema": answer}}
    return {**told, "parameters": parameters} if parameters else told
