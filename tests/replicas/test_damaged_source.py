"""A file of the source that is damaged is an error that names it, and its damage is not copied (C65)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError
from lithify.model.replicas.file_names import origin
from lithify.service.write.append import append
from support.faults.topics import NAME, picture, records
from support.topics.replicas import a_pair


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_damage_that_leaves_the_size_as_it_was_is_not_copied_c65(part: float, tmp_path: Path) -> None:
    pair = a_pair("iceberg", tmp_path)
    pair.mirrored()
    before = picture(pair.target)
    append(pair.source, NAME, records(range(60, 80), keys=7))
    state = pair.source.store.load(NAME)
    damaged = max(pair.source.store.segments(state, [0]), key=lambda segment: segment.base_offset)
    path = Path(local_path(damaged.path) or "")
    whole = path.read_bytes()
    at = int(len(whole) * part)
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    for _ in range(2):
        with pytest.raises(DamagedError) as failure:
            pair.mirror()
        assert damaged.path in failure.value.message
        assert picture(pair.target) == before
        copies = [str(copy) for copy in (tmp_path / "target").rglob("*.parquet")]
        assert copies and all(origin(copy) != origin(damaged.path) for copy in copies)  # retries leave no heap
    path.write_bytes(whole)
    pair.mirrored()
