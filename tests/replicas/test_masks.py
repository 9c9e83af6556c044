"""A topic with masks and its replica, as other engines read both: the same records, none of them hidden ones (C63)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lithify.columnar.files.access import local_path
from lithify.model.record import Record
from lithify.model.segment import Segment, by_file
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.creation import create_warehouse
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import NAME
from support.topics.replicas import Pair, two_warehouses

COLUMNS = ("partition", "offset", "key", "value")


def scanned(folder: Path, snapshot: str) -> list[tuple[object, ...]]:
    """What PyIceberg reads of a branch."""
    catalog = SqlCatalog("lithify", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    table = catalog.load_table((NAME.stream, NAME.topic))
    found = table.snapshot_by_name(snapshot)
    assert found is not None
    rows = table.scan(snapshot_id=found.snapshot_id, selected_fields=COLUMNS).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in COLUMNS) for row in rows)


def joined(warehouse: Warehouse) -> list[tuple[object, ...]]:
    """What SQL gets that takes the positions of masks out of the files that these name."""
    state = warehouse.store.load(NAME)
    named = by_file(
        (*warehouse.store.view(state), *(() if warehouse.store.view(state) else warehouse.store.segments(state)))
    )
    paths = [local_path(path) for path, segment in named.items() if segment.mask is None]
    masks = [local_path(path) for path, segment in named.items() if segment.mask is not None]
    query = f"""
        SELECT {", ".join(f'"{name}"' for name in COLUMNS)}
        FROM read_parquet({paths}, filename = true, file_row_number = true, hive_partitioning = false) AS records
        ANTI JOIN (SELECT file_path, pos FROM read_parquet({masks}, hive_partitioning = false)) AS masks
        ON masks.file_path = 'file://' || records.filename AND masks.pos = records.file_row_number
        ORDER BY ALL"""
    return duckdb.sql(query).fetchall()


def masked(warehouse: Warehouse) -> list[Segment]:
    state = warehouse.store.load(NAME)
    return [s for s in (*warehouse.store.segments(state), *warehouse.store.view(state)) if s.mask is not None]


@pytest.mark.parametrize(("mode", "branch"), [("in-place", "main"), ("side-by-side", "compacted")])
def test_other_engines_read_the_same_of_both_c63(mode: str, branch: str, tmp_path: Path) -> None:
    source, target = two_warehouses("iceberg", tmp_path)
    create_warehouse(source.store)
    config = {"segment.bytes": 1024, "segment.max.dead.ratio": 0.5, "compaction.mode": mode}
    source.store.create_topic(NewTopic(NAME, "orders", settings_of(config), 1, 0))
    pair = Pair(source, target)
    for keys in (range(40), range(0, 40, 9)):
        append(source, NAME, [Record(b"k%d" % key, b"v%d" % key, 1000, partition=0) for key in keys])
        pair.mirrored()
    compact(source, OracleEngine(source.files), NAME, RunRequest()).unless_all_failed()
    pair.mirrored()
    assert len(masked(source)) == len(masked(target)) == 1
    theirs, ours = (scanned(tmp_path / side, branch) for side in ("source", "target"))
    assert len(ours) == 40
    assert ours == theirs == joined(source) == joined(target)
    assert verify_replica(source, target, NAME).findings == ()
