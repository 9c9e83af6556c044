"""Whose records a topic takes, as it is stored."""

from __future__ import annotations

import pytest

from lithify.model.sources.origin import KAFKA, OWN, PROMOTED, CopyOf, Origin, origin_of, origin_text


@pytest.mark.parametrize(
    ("origin", "stored"),
    [
        (OWN, None),
        (PROMOTED, ""),
        (CopyOf(KAFKA, "shop.orders"), "shop.orders"),
        (CopyOf("Pravega", "shop:orders"), "Pravega:shop:orders"),
    ],
)
def test_an_origin_is_read_as_it_was_stored(origin: Origin, stored: str | None) -> None:
    assert (origin_text(origin), origin_of(stored)) == (stored, origin)


def test_what_names_no_topic_is_refused() -> None:
    with pytest.raises(TypeError, match="17 is not a topic"):
        origin_of(17)  # type: ignore[arg-type]
