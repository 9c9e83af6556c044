"""The file of a consumer's position: whole or not there."""

from __future__ import annotations

import pytest

from lithify.errors import InvalidInputError, WarehouseError
from lithify.kafka.place import Place
from lithify.kafka.position_file import PositionFile


def test_what_is_stored_is_loaded(tmp_path):
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    assert file.load() == {}
    for offset in (1, 2):
        places = {0: Place("i", 0, offset, 5), 12: Place("i", 3, 0, 6)}
        file.store(places)
        assert file.load() == places
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_a_store_that_fails_leaves_the_old_one(tmp_path):
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    file.store({0: Place("i", 0, 1, 5)})
    (tmp_path / "p.new").mkdir()
    with pytest.raises(WarehouseError, match="cannot be stored"):
        file.store({0: Place("i", 0, 2, 5)})
    assert file.load()[0].offset == 1


@pytest.mark.parametrize("lake, kafka", [("other", "kafka"), ("lake", "other")])
def test_that_of_others_is_refused(tmp_path, lake, kafka):
    PositionFile(tmp_path / "p", lake, kafka).store({})
    with pytest.raises(InvalidInputError, match=f"the position of {lake} with Kafka's {kafka}"):
        PositionFile(tmp_path / "p", "lake", "kafka").load()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1, "lake": "lake", "kafka": "kafka", "places": {"0": {}}}']
)
def test_what_is_none_is_refused(tmp_path, text):
    (tmp_path / "p").write_text(text)
    with pytest.raises(InvalidInputError, match="not a position of ours"):
        PositionFile(tmp_path / "p", "lake", "kafka").load()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(WarehouseError, match="cannot be read"):
        PositionFile(tmp_path, "lake", "kafka").load()
