"""Tables of cases by rule, as parameters of a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest


def cases_of(table: Mapping[str, Sequence[tuple[Any, ...]]]) -> list[Any]:
    """Every case of every rule; their ids are the rule and a number."""
    return [
        pytest.param(*case, id=f"{rule} {number}") for rule, cases in table.items() for number, case in enumerate(cases)
    ]
