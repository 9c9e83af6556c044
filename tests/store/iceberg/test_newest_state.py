"""Two readers of a table's metadata, ours and PyIceberg's: whatever it says, the truth or an error that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lithify.columnar.files.access import FileAccess, local_path
from lithify.errors import DamagedError, LithifyError, LocationChangedError, UnknownTopicError, UnsupportedFormatError
from lithify.model.names import TopicName
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.store.iceberg.catalog.newest_state import Lists, Newest, named_lists, read_newest, topic_state
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.layout import ICEBERG_FORMAT, MAIN_BRANCH, VIEW_BRANCH
from support.store.builders import ORDERS, Place, some_records

VIEWED = TopicName("devices.eu", "seen")
MUTATIONS = 300
OTHER_VALUES: tuple[Any, ...] = (None, 0, -1, 1, 2, 3, 4, 2**70, 1.5, True, "", "main", "9" * 30, [], {}, float("nan"))
FORESEEN = (DamagedError, UnsupportedFormatError, LocationChangedError, UnknownTopicError)

Keys = tuple[str | int, ...]


def places_in(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """The path of every value within a value of JSON."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(inner, (*path, key))


def value_at(value: Any, path: Keys) -> Any:
    for key in path:
        value = value[key]
    return value


def mutated(metadata: Any, chance: Random) -> Any:
    """Metadata of which a value or two are gone, others, or in another place."""
    changed = deepcopy(metadata)
    for _ in range(chance.choice((1, 1, 2))):
        paths = list(places_in(changed))
        objects = [path for path in paths if isinstance(value_at(changed, path), dict)]
        path, other = chance.sample(chance.choice((paths, objects)), 2)
        parent = value_at(changed, path[:-1])
        match chance.randrange(4):
            case 0:
                del parent[path[-1]]
            case 1:
                parent[path[-1]] = chance.choice(OTHER_VALUES)
            case 2:
                parent[path[-1]] = deepcopy(value_at(changed, other))
            case _:
                parent[path[-1]] = str(parent[path[-1]]).upper()
    return changed


def by_pyiceberg(source: EmbeddedCatalog, name: TopicName) -> Newest:
    table = TopicTables(source).load(name)
    where = table.metadata_location
    lists = named_lists(table.metadata, where, MAIN_BRANCH, VIEW_BRANCH)
    assert lists is not None
    return Newest(replace(topic_state(name, table.metadata, where), stored_as=lists), table.metadata.properties)


def lists_of(newest: Newest) -> Lists:
    lists = newest.state.stored_as
    assert isinstance(lists, Lists)
    return lists


def told(newest: Newest) -> tuple[object, ...]:
    """What Lithify goes by; not the view, which may be seen to be damaged, nor properties of others."""
    ours = {name: value for name, value in newest.properties.items() if name.startswith("lithify.")}
    return newest.state, lists_of(newest).log, ours


@pytest.mark.parametrize("name", [ORDERS, VIEWED], ids=str)
def test_what_either_reader_makes_of_changed_metadata(iceberg: Place, tmp_path: Path, name: TopicName) -> None:
    state = iceberg.create(name, 2, compaction_mode="side-by-side" if name == VIEWED else "in-place")
    state = iceberg.append(state, some_records("a", "b", "a"))
    state = iceberg.cover(state) if name == VIEWED else iceberg.round(state)
    iceberg.append(state, some_records("c"))
    source = EmbeddedCatalog(str(tmp_path / "warehouse"))
    where = TopicTables(source).metadata_file(name)
    assert where is not None
    file, access = Path(local_path(where) or ""), FileAccess(source.io_properties)
    metadata, truth, chance = json.loads(file.read_bytes()), by_pyiceberg(source, name), Random(str(name))
    unchanged = read_newest(access, name, where)
    assert unchanged is not None and unchanged == truth
    assert lists_of(unchanged) == lists_of(truth)
    assert (lists_of(truth).view is None) == (name != VIEWED)

    read = 0
    for number in range(MUTATIONS):
        changed = mutated(metadata, chance)
        file.write_text(json.dumps(changed))
        ours = read_newest(access, name, where)
        assert ours is None or changed["format-version"] == ICEBERG_FORMAT, number
        try:
            theirs = by_pyiceberg(source, name)
        except LithifyError as error:
            assert isinstance(error, FORESEEN), (number, error, error.__cause__)
            theirs = None
        for newest in filter(None, (ours, theirs)):
            read += 1
            assert told(newest) == told(truth), number
            assert lists_of(newest).view in (lists_of(truth).view, None), number
    assert MUTATIONS / 2 < read < 2 * MUTATIONS


def test_a_table_of_a_later_format_of_iceberg_is_not_read_as_one_of_this(iceberg: Place) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    ((_, where),) = iceberg.store.change_tokens()
    file = Path(local_path(where or "") or "")
    metadata = json.loads(file.read_bytes())

    file.write_text(json.dumps({**metadata, "format-version": 3}))
    assert iceberg.store.load(ORDERS) == state  # PyIceberg knows it

    file.write_text(json.dumps({**metadata, "format-version": 9}))
    with pytest.raises(DamagedError, match=f"metadata cannot be read: .* in {where}"):
        iceberg.store.load(ORDERS)
