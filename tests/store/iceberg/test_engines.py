"""Other engines plan with the metrics that we write: a wrong bound would make them leave records out.

Each predicate is asked of an engine that prunes by manifests and row groups, and answered again by
going through all records in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo, GreaterThan, GreaterThanOrEqual, IsNull, LessThan

from lithify.api.lake import Lake
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from support.engines.kernel import compact_without_spark
from support.store.builders import NOW_MS, ORDERS, Place
from support.store.masks import offsets_left

KEYS = [b"", b"\x00", b"a" * 15, b"a" * 16, b"a" * 17, b"a" * 40, b"\xff" * 16, b"\xff" * 17, b"\xff" * 40, b"zz", None]
VALUES = [b"v" * 90, b"", None]

Wanted = Callable[[Record], bool]


@pytest.fixture
def records(iceberg: Place) -> list[Record]:
    """Segments of a single key each, of mixed ones, of tombstones alone; some merged by a round."""
    state = iceberg.create(partitions=2, null_key="retain")
    batches = [[Record(key, VALUES[n % 3], 1000 * n, partition=n % 2)] for n, key in enumerate(KEYS)]
    batches.append([Record(key, b"v", 77_000, partition=1) for key in KEYS])
    batches.append([Record(key, None, 78_000, partition=0) for key in KEYS])
    for batch in batches:
        state = iceberg.append(state, batch)
    iceberg.round(state, 1, keep=lambda record: record.offset != 2)
    state = iceberg.store.load(ORDERS)
    return iceberg.records(state, 0) + iceberg.records(state, 1)


def expected(records: list[Record], wanted: Wanted) -> list[tuple[int, int]]:
    return sorted((r.partition or 0, r.offset or 0) for r in records if wanted(r))


@pytest.mark.engines
def test_duckdb_leaves_nothing_out(records: list[Record], foreign: Catalog, in_duckdb: Any) -> None:
    table = foreign.load_table(("default", "orders"))
    questions: dict[str, Wanted] = {
        "true": lambda _: True,
        "key IS NULL": lambda r: r.key is None,
        "value IS NULL": lambda r: r.value is None,
        "value_size IS NULL": lambda r: r.value is None,
        "value_size = 0": lambda r: r.value == b"",
        "value_size >= 90": lambda r: r.value is not None and len(r.value) >= 90,
        '"offset" >= 9': lambda r: (r.offset or 0) >= 9,
        **{f'"offset" = {n}': lambda r, n=n: r.offset == n for n in range(18)},  # type: ignore[misc]
        "timestamp = 77000": lambda r: r.timestamp == 77_000,
        "timestamp < 1000 AND partition = 0": lambda r: r.timestamp == 0 and r.partition == 0,
    }
    for key in filter(None, KEYS):
        questions[f"key = unhex('{key.hex()}')"] = lambda r, key=key: r.key == key  # type: ignore[misc]
        questions[f"key > unhex('{key.hex()}')"] = lambda r, key=key: r.key is not None and r.key > key  # type: ignore[misc]

    scan = f"SELECT partition, \"offset\" FROM iceberg_scan('{table.metadata_location}')"
    found = in_duckdb([f"{scan} WHERE {predicate}" for predicate in questions])
    assert dict(zip(questions, found, strict=True)) == {
        predicate: expected(records, wanted) for predicate, wanted in questions.items()
    }


def test_pyiceberg_leaves_nothing_out(records: list[Record], foreign: Catalog) -> None:
    table = foreign.load_table(("default", "orders"))
    questions: list[tuple[object, Wanted]] = [
        (IsNull("key"), lambda r: r.key is None),
        (IsNull("value"), lambda r: r.value is None),
        (EqualTo("value_size", 0), lambda r: r.value == b""),
        (GreaterThanOrEqual("offset", 9), lambda r: (r.offset or 0) >= 9),
        (EqualTo("timestamp", 77_000), lambda r: r.timestamp == 77_000),
    ]
    for key in filter(None, KEYS):
        questions.append((EqualTo("key", key), lambda r, key=key: r.key == key))
        questions.append((GreaterThan("key", key), lambda r, key=key: r.key is not None and r.key > key))
        questions.append((LessThan("key", key), lambda r, key=key: r.key is not None and r.key < key))

    for predicate, wanted in questions:
        rows = table.scan(row_filter=predicate, selected_fields=("partition", "offset")).to_arrow().to_pylist()
        assert sorted((row["partition"], row["offset"]) for row in rows) == expected(records, wanted), predicate


def test_a_kept_version_can_be_read_by_its_tag(iceberg: Place, records: list[Record], foreign: Catalog) -> None:
    (kept,) = iceberg.store.versions(ORDERS)
    past = iceberg.store.load_version(ORDERS, kept.version)
    table = foreign.load_table(("default", "orders"))

    rows = table.scan(snapshot_id=table.metadata.refs[f"lithify-{kept.version}"].snapshot_id).to_arrow()

    assert rows.num_rows == len(records) + 1 == sum(len(iceberg.records(past, p)) for p in (0, 1))


def test_anyone_reads_the_table_as_it_stands(iceberg: Place, foreign: Catalog) -> None:
    iceberg.append(iceberg.create(partitions=2), [Record(b"k", None, 1, (("h", None),), p) for p in (0, 1)])

    rows = foreign.load_table(("default", "orders")).scan(row_filter="partition = 1").to_arrow()

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


@pytest.mark.engines
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_engines_read_what_rounds_have_masked_as_lithify_does(
    iceberg: Place, foreign: Catalog, in_duckdb: Any, mode: str
) -> None:
    """The log, the view and every kept version, with the masks that rounds write."""
    iceberg.clock.set(NOW_MS)
    lake = Lake(Warehouse(iceberg.store, iceberg.files, iceberg.clock))
    topic = lake.create_topic("orders", 1, config={"segment.bytes": 2048, "compaction.mode": mode, "versions.kept": 4})
    for chosen in (range(300), range(0, 300, 11), range(2, 300, 13), range(5, 150, 9), range(7)):
        topic.append([Record(b"key %d" % n, b"%d of %d" % (n, len(chosen)), NOW_MS, partition=0) for n in chosen])
        compact_without_spark(topic)
    topic.undo()
    topic.delete_records(0, 1)
    topic.append([Record(b"key 200", None, NOW_MS, partition=0)])
    compact_without_spark(topic)

    named = _named(iceberg, mode)
    with_masks = {ref for ref, segments in named.items() if any(segment.mask is not None for segment in segments)}
    assert ("main" if mode == "in-place" else "compacted") in with_masks and len(with_masks) > 2
    table = foreign.load_table(("default", "orders"))
    snapshots = {ref: table.metadata.refs[ref].snapshot_id for ref in named}
    scans = [f"iceberg_scan('{table.metadata_location}', snapshot_from_id={s})" for s in snapshots.values()]
    found = in_duckdb([f'SELECT partition, "offset" FROM {scan}' for scan in scans])
    for (ref, segments), in_ref in zip(named.items(), found, strict=True):
        rows = table.scan(snapshot_id=snapshots[ref], selected_fields=("partition", "offset")).to_arrow().to_pylist()
        left = [(s.partition, r.offset) for s in segments for r in iceberg.records_of([s])]
        assert left == offsets_left(segments) == in_ref == sorted((row["partition"], row["offset"]) for row in rows), (
            ref
        )


def _named(place: Place, mode: str) -> dict[str, tuple[Segment, ...]]:
    """By branch or tag, the segments that it has, by Lithify."""
    state = place.store.load(ORDERS)
    named = {"main": place.store.segments(state)}
    if mode == "side-by-side":
        named["compacted"] = place.store.view(state)
    for kept in place.store.versions(ORDERS):
        past = place.store.load_version(ORDERS, kept.version)
        named[f"lithify-{kept.version}"] = place.store.segments(past)
        if past.logs[0].view is not None:
            named[f"lithify-{kept.version}-view"] = place.store.view(past)
    return named
