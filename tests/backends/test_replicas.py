"""Replicas between a folder and an object store, with a database as the catalog of one (C63, C65)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithify.api.wiring import open_warehouse
from lithify.errors import DamagedError, LithifyError
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from support.engines.kernel import KernelEngine
from support.store.builders import ORDERS, some_records
from support.topics.replicas import check_same

from .conftest import Backend

LARGE_BYTES = 20 * 2**20
"""Of a file: more than one piece, on either side."""
REQUEST = MirrorRequest("there")


@pytest.fixture
def source(tmp_path: Path) -> Warehouse:
    """A topic in a folder, with a file that is copied in several pieces, and a round."""
    warehouse = open_warehouse(str(tmp_path / "source"))
    config = {"compression.type": "none", "max.message.bytes": LARGE_BYTES}
    warehouse.store.create_topic(NewTopic(ORDERS, "orders", settings_of(config), 2, warehouse.clock.now_ms()))
    append(warehouse, ORDERS, some_records("a", "b", "a"))
    append(warehouse, ORDERS, [Record(b"large%d" % n, os.urandom(LARGE_BYTES // 8), partition=1) for n in range(8)])
    compact(warehouse, KernelEngine(), ORDERS, RunRequest())
    append(warehouse, ORDERS, some_records("b", "c"))
    return warehouse


def test_a_bucket_has_a_replica_and_a_folder_one_of_that_c63(
    source: Warehouse, backend: Backend, tmp_path: Path
) -> None:
    bucket, folder = backend.warehouse(), open_warehouse(str(tmp_path / "back"))
    for _ in range(2):
        mirror(source, bucket, ORDERS, REQUEST)
        check_same(source, bucket, ORDERS)
        mirror(bucket, folder, ORDERS, REQUEST)
        check_same(bucket, folder, ORDERS)
        assert verify_replica(source, bucket, ORDERS).findings == ()
        assert verify_replica(bucket, folder, ORDERS).findings == ()
        append(source, ORDERS, some_records("d", "e"))


def test_a_copy_into_a_bucket_that_is_cut_off_continues_c65(source: Warehouse, backend: Backend) -> None:
    bucket = backend.warehouse()
    pieces: list[int] = []

    def cut(size_bytes: int) -> None:
        pieces.append(size_bytes)
        if len(pieces) == 5:
            backend.s3_wire.cut()

    with pytest.raises(LithifyError):
        mirror(source, bucket, ORDERS, MirrorRequest("there", acquire=cut))
    backend.s3_wire.mend()
    mirror(source, bucket, ORDERS, REQUEST)
    check_same(source, bucket, ORDERS)
    assert verify_replica(source, bucket, ORDERS).clean


def test_a_file_that_the_bucket_lost_is_named_c65(source: Warehouse, backend: Backend, tmp_path: Path) -> None:
    bucket, folder = backend.warehouse(), open_warehouse(str(tmp_path / "back"))
    mirror(source, bucket, ORDERS, REQUEST)
    lost = bucket.store.segments(bucket.store.load(ORDERS))[0]
    backend.lose(lost)
    (finding,) = verify_replica(None, bucket, ORDERS).findings
    assert (finding.kind, finding.path) == ("file_missing", lost.path)
    with pytest.raises(DamagedError, match="missing"):
        mirror(bucket, folder, ORDERS, REQUEST)
