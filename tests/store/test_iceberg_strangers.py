"""Others open the same table: their reading is right, and what they write is noticed or left alone (C8)."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import Catalog

from lithify.errors import DamagedError, WarehouseError
from lithify.model.record import Record
from support.store.builders import ORDERS, Place, some_records

ORDERS_TABLE = ("default", "orders")


def test_what_a_stranger_writes_to_main_is_noticed(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    table = foreign.load_table(ORDERS_TABLE)
    table.append(iceberg.files.read(iceberg.store.segments(state)[0], 0).__next__().to_arrow())

    for call in (
        lambda: iceberg.store.load(ORDERS),
        lambda: iceberg.append(state, some_records("b")),
        lambda: iceberg.store.load_version(ORDERS, state.version),
    ):
        with pytest.raises(DamagedError, match="something other than Lithify moved the table's main branch"):
            call()

    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[-2].snapshot_id).commit()
    assert iceberg.store.load(ORDERS) == state


def test_main_set_back_by_a_stranger_is_noticed(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.round(iceberg.append(iceberg.create(), some_records("a", "b")), keep=lambda r: r.key == b"b")
    table = foreign.load_table(ORDERS_TABLE)
    table.manage_snapshots().set_current_snapshot(ref_name="lithify-2").commit()

    with pytest.raises(DamagedError, match=f"not at version {state.version}"):
        iceberg.store.load(ORDERS)


def test_properties_and_tags_of_strangers_stay_and_disturb_no_verb(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    table = foreign.load_table(ORDERS_TABLE)
    with table.transaction() as change:
        change.set_properties({"comment": "mine"})
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "mine").commit()

    for n in range(3):
        state = iceberg.append(state, some_records(f"{n}"))

    table.refresh()
    assert table.properties["comment"] == "mine"
    assert table.scan(snapshot_id=table.metadata.refs["mine"].snapshot_id).to_arrow().num_rows == 1
    assert table.scan().to_arrow().num_rows == 4


def test_a_table_that_allows_retries_is_not_written_to(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.create()
    with foreign.load_table(ORDERS_TABLE).transaction() as change:
        change.set_properties({"commit.retry.num-retries": "4"})

    with pytest.raises(WarehouseError, match=r"num-retries is not 0 .*set commit.retry.num-retries=0"):
        iceberg.append(state, some_records("a"))

    assert iceberg.store.load(ORDERS) == state


def test_anyone_reads_the_table_as_it_stands(iceberg: Place, foreign: Catalog) -> None:
    iceberg.append(iceberg.create(partitions=2), [Record(b"k", None, 1, (("h", None),), p) for p in (0, 1)])

    rows = foreign.load_table(ORDERS_TABLE).scan(row_filter="partition = 1").to_arrow()

    assert rows.to_pylist() == [
        {
            "partition": 1,
            "offset": 0,
            "timestamp": 1,
            "timestamp_type": 0,
            "key": b"k",
            "value": None,
            "value_size": None,
            "headers": [{"key": "h", "value": None}],
        }
    ]
