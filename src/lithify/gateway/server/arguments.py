"""The arguments of a request as the method that it calls takes them, checked against its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from starlette.datastructures import QueryParams

from lithify.errors import InvalidInputError
from lithify.gateway.operations.operation import Operation
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId

LARGEST = 2**63 - 1
LONGEST_NUMBER = 20
"""Characters of a number of 64 bits, with its sign."""


class Time(msgspec.Struct, forbid_unknown_fields=True):
    """Where to start, as a time."""

    time_ms: int


_START = int | str | Time
_AS_JSON = {"Start": _START}
"""Types of arguments that JSON writes in another way: a start may be `earliest`, `latest`, `@EPOCH_MS` or a message id,
and is always text in a query."""


def arguments_type(operation: Operation) -> type[msgspec.Struct]:
    """A type with a field for each argument that the operation accepts and that is not in its path."""
    function = operation.function()
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in operation.accepts or f"{{{name}}}" in operation.path:
            continue
        annotation = _evaluated(function, parameter.annotation)
        field = (name, annotation) if parameter.default is parameter.empty else (name, annotation, parameter.default)
        fields.append(field)
    return msgspec.defstruct(f"{operation.name}_arguments", fields, forbid_unknown_fields=True, kw_only=True)


def _evaluated(function: Callable[..., Any], annotation: Any) -> Any:
    """One annotation alone: others name what is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    return _AS_JSON.get(annotation) or eval(annotation, function.__globals__)


def schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type. What may be of any type has an empty one."""
    return msgspec.json.schema(kind, schema_hook=any_value)


def any_value(kind: type) -> dict[str, Any]:
    """The schema of `object`. Raises `NotImplementedError` for any other type that JSON does not have."""
    if kind is not object:
        raise NotImplementedError(kind)
    return {"description": "text, or any other value of JSON"}


def of_body(kind: type[msgspec.Struct], body: bytes) -> dict[str, Any]:
    """The arguments in a JSON object. Raises `InvalidInputError`."""
    try:
        return _given(msgspec.json.decode(body or b"{}", type=kind))
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidInputError(f"the body of the request: {error}", hint="GET /openapi.json describes it") from None


def of_query(kind: type[msgspec.Struct], query: QueryParams) -> dict[str, Any]:
    """The same in a query; a list is one parameter for each value. Raises `InvalidInputError`."""
    lists = _lists(kind)
    given = {name: query.getlist(name) if name in lists else query[name] for name in query}
    try:
        return _given(msgspec.convert(given, kind, strict=False))
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"the query of the request: {error}", hint="GET /openapi.json describes it") from None


def _given(arguments: msgspec.Struct) -> dict[str, Any]:
    """Raises `InvalidInputError` for a number that no field of Lithify has."""
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(type(arguments)):
        name, value = field.name, getattr(arguments, field.name)
        value = _start(name, value) if field.type == _START else value
        if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
            raise InvalidInputError(f"{name}: {str(value)[:20]}... is too large a number", hint="use 64-bit numbers")
        given[name] = value
    return given


def _start(name: str, given: int | str | Time) -> Start:
    match given:
        case Time(time_ms):
            return AtTime(time_ms)
        case int():
            return given
        case "earliest" | "latest":
            return given
    is_time, number = given.startswith("@"), given.removeprefix("@")
    if number.removeprefix("-").isdecimal() and number.isascii() and len(number) <= LONGEST_NUMBER:
        return AtTime(int(number)) if is_time else int(number)
    try:
        return MessageId.parsed(given)
    except ValueError:
        raise InvalidInputError(
            f"{name}: {given[:40]!r} is not a start", hint="use earliest, latest, an offset, @EPOCH_MS or LEDGER:ENTRY"
        ) from None


@cache
def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that are lists: found once for each type, as schemas take longer than a request."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if _is_list(field.type))


def _is_list(kind: Any) -> bool:
    told: Mapping[str, Any] = schema(kind)
    return any(one.get("type") == "array" for one in (told, *told.get("anyOf", ())))
