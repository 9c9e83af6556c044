"""What a log directory says: checkpoints, segments, folders."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_log.directories.checkpoints import (
    CheckpointError,
    EpochStart,
    epochs_in,
    offsets_in,
    properties_in,
    topic_id_in,
)
from lithify.kafka_log.directories.folders import held, is_in_use, log_directory
from lithify.kafka_log.directories.segment_names import in_place, offsets_of, segment_names
from support.kafka.locked import locked


def name(base: int, end: str = "") -> str:
    return f"{base:020}.log{end}"


def test_checkpoints() -> None:
    assert offsets_in("0\n2\norders 0 1500\norders 1 900\n") == {("orders", 0): 1500, ("orders", 1): 900}
    assert offsets_in("0\n0\n") == offsets_in("") == {}
    assert epochs_in("0\n2\n0 0\n3 1200\n") == (EpochStart(0, 0), EpochStart(3, 1200))
    assert topic_id_in("version: 0\ntopic_id: xGgq-A") == "xGgq-A"
    assert properties_in("version=1\nnode.id=1") == {"version": "1", "node.id": "1"}
    assert properties_in("#\n#Sun Nov 29\ncluster.id=abc=\nnode.id=1\n") == {"cluster.id": "abc=", "node.id": "1"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" ", "version"),
        ("1\n0\n", "version is '1'"),
        ("0\n2\norders 0 1\n", "states 2 entries, but has 1"),
        ("0\n1\norders 0\n", "other than 3 words"),
        ("0\n1\norders 0 x\n", "'x' is not a number"),
        ("0\nx\n", "'x' is not a number"),
        ("0\n1\norders 0 9223372036854775808\n", "'9223372036854775808' is not a number"),
    ],
)
def test_checkpoints_that_no_broker_writes(text: str, why: str) -> None:
    with pytest.raises(CheckpointError, match=why):
        offsets_in(text)


@given(st.text())
def test_no_text_breaks_them(text: str) -> None:
    for read in (offsets_in, epochs_in, topic_id_in, properties_in):
        try:
            read(text)
        except CheckpointError:
            continue


def test_properties_of_a_later_broker_are_refused() -> None:
    with pytest.raises(CheckpointError, match="its version is '2', not 0 or 1"):
        properties_in("version=2\ncluster.id=c\n")


def test_segments_are_in_order_and_other_files_are_none() -> None:
    names = segment_names([name(20), name(0), name(0, ".deleted"), "00000000000000000000.index", "0.log", "x.log"])
    assert (list(names.segments), names.swaps) == ([0, 20], {})
    assert in_place(names, {}) == {0: name(0), 20: name(20)}
    assert not segment_names([name(2**63 - 1), name(10**19), "".join("\u0663" for _ in range(20)) + ".log"]).segments


def test_the_offsets_that_a_segment_can_have() -> None:
    assert offsets_of([0, 20]) == [range(20), range(20, 20 + 2**31)]
    assert (offsets_of([]), offsets_of([2**63 - 9])) == ([], [range(2**63 - 9, 2**63 - 1)])


def test_a_swap_takes_the_place_of_all_that_it_covers() -> None:
    names = segment_names([name(0), name(10), name(20), name(0, ".swap")])
    assert in_place(names, {0: 20}) == {0: name(0, ".swap"), 20: name(20)}
    assert in_place(names, {0: 0}) == {0: name(0, ".swap"), 10: name(10), 20: name(20)}


def test_swaps_of_a_cleaning_that_was_not_complete_do_not_count() -> None:
    names = segment_names([name(0), name(10), name(0, ".swap"), name(10, ".swap"), name(10, ".cleaned")])
    assert names.swaps == {0: name(0, ".swap")}


def test_folders(tmp_path: Path) -> None:
    for folder in ("orders-0", "a-b-12", "orders-1.5f2c-delete", "orders-1.5f2c-future", "x", "__consumer_offsets-3"):
        (tmp_path / folder).mkdir()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n4 7\n")
    (tmp_path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: id")
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 8\n")
    (tmp_path / "meta.properties").write_text("cluster.id=c\n")
    found = {(one.topic, one.partition): one for one in log_directory(tmp_path).folders}
    assert set(found) == {("orders", 0), ("a-b", 12), ("__consumer_offsets", 3)}
    orders = found["orders", 0]
    assert (orders.cluster, orders.topic_id, orders.epochs, orders.first_dirty) == ("c", "id", (EpochStart(4, 7),), 8)
    assert (orders.log_start, orders.is_internal, found["__consumer_offsets", 3].is_internal) == (None, False, True)
    assert not log_directory(tmp_path).was_shut_down
    (tmp_path / ".kafka_cleanshutdown").touch()
    alone = log_directory(_with_segment(tmp_path / "orders-0"))
    assert alone.was_shut_down
    (folder,) = alone.folders
    assert (folder.topic, folder.partition, folder.topic_id, folder.first_dirty) == ("orders", 0, "id", 8)


def test_folders_have_the_names_by_which_a_broker_finds_them(tmp_path: Path) -> None:
    """Whatever other files lie beside them, and wherever a link leads."""
    logs, elsewhere = tmp_path / "logs-7", tmp_path / "elsewhere" / "moved"
    (logs / "orders-0").mkdir(parents=True)
    elsewhere.mkdir(parents=True)
    (logs / "server.log").write_text("INFO started")
    (logs / "orders-1").symlink_to(_with_segment(elsewhere))
    for other in ("orders-\u0663", "orders-00"):
        (logs / other).mkdir()
    (logs / "orders-2").symlink_to(tmp_path / "nowhere")
    (logs / "orders-3").symlink_to(logs / "orders-3")
    assert [(one.path.name, one.partition) for one in log_directory(logs).folders] == [("orders-0", 0), ("orders-1", 1)]
    (tmp_path / "latest").symlink_to(_with_segment(logs / "orders-0"))
    for path in (tmp_path / "latest", logs / "orders-1"):
        assert [one.topic for one in log_directory(path).folders] == ["orders"]


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(OSError, match="not a regular file"):
        is_in_use(tmp_path)
    for place in (tmp_path / "cleaner-offset-checkpoint", folder / "partition.metadata"):
        for make in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")):
            make(place)
            with pytest.raises(OSError, match="not a regular file") as told:
                log_directory(tmp_path)
            assert told.value.filename == str(place)
            (place.rmdir if place.is_dir() else place.unlink)()
    endless = tmp_path / "meta.properties"
    with endless.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="more than 67108864 bytes"):
        log_directory(tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    checkpoint = tmp_path / "orders-0" / "leader-epoch-checkpoint"
    checkpoint.parent.mkdir()
    checkpoint.write_text("0\n2\n0 0\n")
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(checkpoint))}: it states 2 entries, but has 1$"):
        log_directory(tmp_path)


def _with_segment(folder: Path) -> Path:
    (folder / name(0)).touch()
    return folder


def test_a_directory_that_another_process_has_locked_is_in_use(tmp_path: Path) -> None:
    assert not is_in_use(tmp_path)
    (tmp_path / ".lock").touch()
    assert not is_in_use(tmp_path)
    with locked(tmp_path):
        assert is_in_use(tmp_path)
    assert not is_in_use(tmp_path)


def test_a_directory_is_held_once_in_a_process(tmp_path: Path) -> None:
    """For the system a second lock of the same process is no second one, and its end is the end of both."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with held(tmp_path / "data") as first:
        with held(tmp_path / "link") as second:
            assert first and not second
        assert is_in_use(tmp_path / "data")
        lock, how = str(tmp_path / "data" / ".lock"), fcntl.LOCK_EX | fcntl.LOCK_NB
        tries = [sys.executable, "-c", f"import fcntl; fcntl.lockf(open({lock!r}, 'wb'), {how})"]
        assert subprocess.run(tries, stderr=subprocess.DEVNULL, check=False).returncode
    assert not is_in_use(tmp_path / "data")
    with held(tmp_path / "data") as again:
        assert again


def test_a_file_of_another_name_makes_no_folder_of_a_partition(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "server.log").touch()
    (found,) = log_directory(tmp_path).folders
    assert found.topic == "orders"
