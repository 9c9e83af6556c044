"""The format of a warehouse as it is stored, and what it lets topics be (C66)."""

from __future__ import annotations

import json

import pytest

from lithify.errors import UnsupportedFormatError
from lithify.model.formats.features import COMPACTED_LOGS
from lithify.model.formats.warehouse import (
    NEWEST_FORMAT,
    UNSTATED_FORMAT,
    WarehouseFormat,
    check_holds,
    check_supported,
)


@pytest.mark.parametrize("of", [UNSTATED_FORMAT, NEWEST_FORMAT])
def test_it_goes_through_json_unchanged(of: WarehouseFormat) -> None:
    assert WarehouseFormat.from_json(json.loads(json.dumps(of.to_json()))) == of


@pytest.mark.parametrize("content", [{}, {"version": "4", "features": []}, {"version": 4, "features": "ab"}])
def test_what_is_none_is_refused(content: dict[str, object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        WarehouseFormat.from_json(content)


def test_a_format_of_a_newer_lithify_is_refused_by_its_number_or_its_feature() -> None:
    for known in (UNSTATED_FORMAT, NEWEST_FORMAT):
        check_supported("w", known)
    with pytest.raises(UnsupportedFormatError, match=r"w: the warehouse has format 5, .* up to 4 \(use a newer"):
        check_supported("w", WarehouseFormat(5))
    with pytest.raises(UnsupportedFormatError, match="w: it has the feature fast-logs"):
        check_supported("w", WarehouseFormat(4, frozenset({"fast-logs"})))


def test_an_earlier_warehouse_holds_what_needs_no_feature_and_asks_for_an_upgrade_otherwise() -> None:
    """C66"""
    check_holds("w", UNSTATED_FORMAT, "orders", ())
    check_holds("w", NEWEST_FORMAT, "orders", [COMPACTED_LOGS])
    with pytest.raises(UnsupportedFormatError, match=r"orders: it needs .* w has format 3 .*`lake.upgrade\(\)`"):
        check_holds("w", UNSTATED_FORMAT, "orders", [COMPACTED_LOGS])
