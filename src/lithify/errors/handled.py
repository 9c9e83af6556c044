"""Exceptions without secrets: Python prints those that are causes of ours, with all that they have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from lithify.errors.redaction import HIDDEN, LARGE, ends_redacted, error_text, redacted

DEPTH = 3
"""Of containers in what an exception has: one may contain itself."""
_PLAIN = (tuple, list, set, frozenset)


def without_secrets(*texts: str) -> tuple[str, ...]:
    """The texts of a new error. What is being handled loses its secrets as well."""
    redact_handled()
    return tuple(map(error_text, texts))


def redact_handled() -> None:
    """Takes secrets out of the exception that is being handled and those before it: Python prints them as causes."""
    for error in _chain(sys.exc_info()[1]):
        vars(error).update({name: _cleaned(value) for name, value in vars(error).items()})
        for name in _attributes(type(error)):
            with suppress(Exception):  # read-only, or not there
                value = getattr(error, name)
                if (clean := _cleaned(value)) != value:
                    BaseException.__setattr__(error, name, clean)  # also of one that is frozen
        _say_without_secrets(error)


def _attributes(kind: type[BaseException]) -> Iterator[str]:
    """`args`, and what is kept beside it: a builtin exception has its text twice, as `msg` or `strerror`."""
    slots = (MemberDescriptorType, GetSetDescriptorType)
    for part in kind.__mro__:
        yield from (name for name, at in vars(part).items() if isinstance(at, slots) and not name.startswith("__"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what caused it, what was handled meanwhile, and those that it has as arguments or attributes."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            parts = (*one.args, *vars(one).values(), *getattr(one, "exceptions", ()))
            left += [one.__cause__, one.__context__, *(part for part in parts if isinstance(part, BaseException))]
            yield one


def _cleaned(value: Any, depth: int = DEPTH) -> Any:
    """The same with its texts redacted, also those in plain containers."""
    match value:
        case str():
            return ends_redacted(value)
        case bytes() if len(value) <= LARGE:  # else it is data, of an error of decoding
            return redacted(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        case tuple() | list() | set() | frozenset() if depth and type(value) in _PLAIN:
            return type(value)(_cleaned(one, depth - 1) for one in value)
        case dict() if depth and type(value) is dict:
            return {_cleaned(name, depth - 1): _cleaned(one, depth - 1) for name, one in value.items()}
        case tuple() | list() | set() | frozenset() | dict() if (
            not depth and ends_redacted(shown := repr(value)) != shown
        ):
            return HIDDEN
        case _:
            return value


def _say_without_secrets(error: BaseException) -> None:
    """Gives an exception a text that it makes of something else, such as a call of a JVM, without the secrets there."""
    with suppress(Exception):  # whatever making a text raises, and classes that take no other methods
        text, kind = str(error), type(error)
        if (clean := ends_redacted(text)) != text:
            names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": lambda _: clean}
            error.__class__ = type(kind.__name__, (kind,), names)
