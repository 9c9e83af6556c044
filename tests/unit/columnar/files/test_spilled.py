"""What tasks keep on disk: in Spark's folders, unreadable without the memory of the task, and gone after."""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.files.spilled import Sealer, spill_file, spill_folder
from lithify.columnar.key_hash import KeyHash
from lithify.columnar.keypass.key_blocks import Spool, blocks_by_range
from lithify.columnar.keypass.ranks import RANKED_KEYS, Portion
from lithify.errors import EngineError
from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.kept import KeptEntries


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files of this process."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    return folder


def test_it_is_in_sparks_folders_and_deleted_after(tmp_path, temporary, monkeypatch):
    local = tmp_path / "blockmgr"
    local.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/missing,{local}")
    with spill_folder() as folder:
        assert folder.parent == local
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "keys").write_bytes(b"x")
    assert list(local.iterdir()) == list(temporary.iterdir()) == []


def test_without_spark_it_is_where_temporary_files_are(temporary):
    with spill_folder() as folder:
        assert folder.parent == temporary


def test_no_folder_is_an_error_that_names_it(temporary):
    temporary.rmdir()
    with (
        pytest.raises(EngineError, match=r"tmp/lithify-.*temporary files cannot be written there.*spark\.local\.dir"),
        spill_folder(),
    ):
        pass
    with (
        pytest.raises(EngineError, match=r"tmp.*temporary files cannot be written there.*spark\.local\.dir"),
        spill_file(),
    ):
        pass


def test_keys_are_not_in_the_files_of_a_spool(tmp_path):
    keys = [secrets.token_bytes(32) for _ in range(50)]
    rows = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(np.arange(50))], schema=RANKED_KEYS)
    spool = Spool(tmp_path / "spool")
    for _, block in blocks_by_range(iter([rows]), 1, KeyHash("seed"), 2**20):
        assert all(key in block for key in keys), "what compression leaves readable is what has to be encrypted"
        spool.add(block, Portion.DIRTY)
    written = (tmp_path / "spool" / Portion.DIRTY).read_bytes()
    assert [key for key in keys if key in written] == []
    assert [key for batch in spool.keys(Portion.DIRTY) for key in batch.column("key").to_pylist()] == keys


def test_payloads_are_not_in_the_file_of_kept_entries():
    entries = [RawEntry(5, number, secrets.token_bytes(64)) for number in range(20)]

    class Reader:
        def read(self, _start, _end, *, compacted=False):
            assert not compacted
            yield entries

    with spill_file() as file:
        kept = KeptEntries(Reader(), file)
        assert [list(kept.read(None, MessageId(5, 19))) for _ in range(2)] == [[entries], [entries]]
        file.seek(0)
        written = file.read()
    assert len(written) > 20 * 64
    assert [raw for raw in entries if raw.data in written] == []


def test_changed_bytes_are_not_taken_for_what_was_sealed():
    sealer = Sealer()
    first, second = sealer.seal(b"same"), sealer.seal(b"same")
    assert first != second
    assert sealer.open(first) == sealer.open(second) == b"same"
    for wrong in (first[:-1] + bytes([first[-1] ^ 1]), b"", Sealer().seal(b"same")):
        with pytest.raises(EngineError, match="is not what the task wrote"):
            sealer.open(wrong)


def test_whatever_the_disk_refuses_names_the_folder_and_how_to_get_space(tmp_path):
    """At the first folder, a write, a read and the deletion: no inode is left, the disk was unmounted."""
    rows = pa.RecordBatch.from_arrays([pa.array([b"k"]), pa.array([0])], schema=RANKED_KEYS)
    [(_, block)] = blocks_by_range(iter([rows]), 1, KeyHash("seed"), 2**20)
    full = pytest.raises(
        EngineError, match=rf"{tmp_path}.*cannot be spooled.*spark\.local\.dir.*task-memory|task_memory"
    )
    with full:
        Spool(tmp_path / "missing" / "spool")
    spool = Spool(tmp_path / "spool")
    spool.add(block, Portion.DIRTY)
    (tmp_path / "spool").rename(tmp_path / "gone")
    for use in (lambda: spool.add(block, Portion.DIRTY), lambda: list(spool.keys(Portion.DIRTY)), spool.clear):
        with full:
            use()
