"""The Iceberg store does what every store must, also when no process remembers anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import UnknownVersionError
from lithify.model.log import TopicState
from lithify.store.iceberg import IcebergStore, open_store
from store.conformance import StoreConformance
from support.store.builders import Place, some_records


class TestIcebergStore(StoreConformance):
    @pytest.fixture
    def place(self, iceberg: Place) -> Place:
        return iceberg

    def test_what_was_loaded_by_its_mark_is_good_after_others_have_committed(self, place: Place) -> None:
        before = place.append(place.create(), some_records("a"))
        (found,) = (place.store.load_at(*known) for known in place.store.change_tokens())
        place.append(before, some_records("b"))

        assert len(place.store.segments(found)) == 1


class Reopened:
    """Opens the warehouse anew for every single call, as if each came from another process."""

    def __init__(self, open_one: Callable[[], IcebergStore]) -> None:
        self._open_one = open_one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open_one(), name)


class TestIcebergStoreOfManyProcesses(StoreConformance):
    @pytest.fixture
    def place(self, iceberg: Place, tmp_path: Path) -> Place:
        def open_one() -> IcebergStore:
            return open_store(str(tmp_path / "warehouse"), None, iceberg.clock.new_id)[0]

        return replace(iceberg, store=Reopened(open_one))  # type: ignore[arg-type]

    def view_seen_before(self, place: Place, state: TopicState) -> object:
        """Likewise."""
        return self.segments_seen_before(place, state)

    def segments_seen_before(self, place: Place, state: TopicState) -> object:
        """A state that is neither newest nor kept, and came from another process, is refused, never guessed at."""
        if place.store.load(state.name).version == state.version:
            return "version"
        with pytest.raises(UnknownVersionError, match="version"):
            place.store.segments(state)
        return "version"
