"""What records change in a stored table: as the plain fold of all records, however they are cut into changes."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest

from lithify.model.record import Record
from lithify.model.settings.table import Strategy
from lithify.service.snapshot.changes import Changes, LogKey
from lithify.service.snapshot.table_fold import TableFold
from support.builders import some_settings

NOW = 1_700_000_000_000


def some_records(seed: int, count: int = 300) -> list[Record]:
    luck = Random(seed)

    def value() -> bytes | None:
        return luck.choice([None, b"", b"v%d" % luck.randrange(99)])

    def order() -> tuple[tuple[str, bytes | None], ...]:
        return luck.choice([(), (("v", luck.randrange(50).to_bytes(8, "big")),), (("v", b"short"),)])

    return [
        Record(luck.choice([None, *(b"k%d" % n for n in range(9))]), value(), NOW + luck.randrange(50), order(), 0, n)
        for n in range(count)
    ]


@pytest.mark.parametrize("strategy", get_args(Strategy))
@pytest.mark.parametrize("empty", ["value", "tombstone"])
@pytest.mark.parametrize("seed", range(4))
def test_cut_anywhere_they_leave_what_the_fold_leaves(strategy: str, empty: str, seed: int) -> None:
    """C10, C11, C17."""
    more = {"compaction_strategy_header": "v"} if strategy == "header" else {}
    settings = some_settings(compaction_strategy=strategy, empty_value=empty, **more)
    expected: dict[bytes, Record] = {}
    records = some_records(seed)
    TableFold(settings).put_all(expected, records)

    luck, changes = Random(seed), Changes(settings)
    table: dict[LogKey, Record] = {}
    orders: dict[LogKey, int] = {}
    while records:
        cut = luck.randrange(1, 40)
        changes.put_all(records[:cut])
        records = records[cut:]
        changes.drop_losers({place: orders[place] for place in changes.winners.keys() & orders.keys()})
        for place, record in changes.winners.items():
            if changes.by_order:
                orders[place] = changes.order(record)
            if changes.deletes(record):
                table.pop(place, None)
            else:
                table[place] = record
        changes.clear()
    assert {key: record for (_, key), record in table.items()} == expected


def test_a_key_in_two_partitions_is_two_keys() -> None:
    changes = Changes(some_settings())
    changes.put_all([Record(b"a", b"1", NOW, (), 0, 5), Record(b"a", b"2", NOW, (), 1, 3)])
    assert {place: record.value for place, record in changes.winners.items()} == {(0, b"a"): b"1", (1, b"a"): b"2"}
