"""A part of the collected tests, for runs that try the same code many times: on another Python, or with a mutant."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import settings


def bound_examples(items: Sequence[pytest.Item], at_most: int) -> None:
    """Properties and state machines are tried with at most so many examples."""
    for item in items:
        test = getattr(item, "obj", None)
        for place, name in (
            (getattr(test, "__func__", test), "_hypothesis_internal_use_settings"),
            (getattr(item, "cls", None), "settings"),  # of a state machine
        ):
            if isinstance(given := getattr(place, name, None), settings):
                setattr(place, name, settings(given, max_examples=min(at_most, given.max_examples)))


def first_cases(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Each test once: one that has parameters with the first of them."""
    first: dict[str, pytest.Item] = {}
    for item in items:
        first.setdefault(item.nodeid.partition("[")[0], item)
    return list(first.values())
