"""A source, a replica, or a whole warehouse that comes back from a backup, between two copies (C63, C64)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.errors import ConflictError
from lithify.model.record import Record
from lithify.model.topic.log import RUN_IDS_KEPT
from lithify.service.change.cut import truncate
from lithify.service.replica.verify import verify_replica
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark
from support.faults.topics import NAME
from support.topics.replicas import Pair, a_pair, warehouses_in

pytestmark = pytest.mark.long


def written(pair: Pair, *values: bytes) -> None:
    """One commit for each value, all of the same size and time."""
    for value in values:
        append(pair.source, NAME, [Record(key=b"key", value=value, timestamp=5, partition=0)])


def restored(folder: Path, lose: Callable[[Pair], object]) -> Pair:
    """The source has a backup, and the replica has what was done since."""
    pair = a_pair("iceberg", folder)
    written(pair, *[b"kept"] * RUN_IDS_KEPT)
    shutil.copytree(folder / "source", folder / "backup")
    lose(pair)
    pair.mirrored()
    shutil.rmtree(folder / "source")
    shutil.move(folder / "backup", folder / "source")
    return pair


def end(pair: Pair) -> int:
    return pair.source.store.load(NAME).log(0).log_end_offset


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FakeClock, int]:
    """A folder with a pair whose replica has one commit more, which is also beside it; its clock, and the time then."""
    folder = tmp_path_factory.mktemp("made") / "pair"
    folder.mkdir()
    pair = restored(folder, lambda pair: written(pair, b"lost"))
    shutil.copytree(folder, folder.with_name("as made"))
    return folder, pair.clock, pair.clock.now_ms()


@pytest.fixture
def pair(made: tuple[Path, FakeClock, int]) -> Pair:
    """The pair as it was made; ids go on, so that no two tests have the same."""
    folder, clock, now_ms = made
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("as made"), folder)
    clock.set(now_ms)
    return Pair(*warehouses_in(folder, clock))


def test_another_history_that_looks_the_same_c64(pair: Pair) -> None:
    written(pair, b"left")
    append(pair.source, NAME, [Record(key=b"key", value=b"elsewhere", timestamp=5, partition=1)])
    with pytest.raises(ConflictError, match="its logs lack commits of its version"):
        pair.mirror()


@pytest.mark.parametrize("partition", [0, 1])
def test_another_history_however_long_c64(pair: Pair, partition: int) -> None:
    """The only copy of what the source had lost was overwritten, once the source had gone on for four commits."""
    written(pair, b"left")
    for _ in range(RUN_IDS_KEPT):
        append(pair.source, NAME, [Record(key=b"key", value=b"elsewhere", timestamp=5, partition=partition)])
    with pytest.raises(ConflictError, match="partition 0 lacks the records that the replica has from offset"):
        pair.mirror()


def test_another_history_however_long_that_was_truncated_behind_it_c64(pair: Pair) -> None:
    written(pair, b"left", *[b"elsewhere"] * RUN_IDS_KEPT)
    truncate(pair.source, NAME, 0, end(pair) - 1)
    with pytest.raises(ConflictError, match="partition 0 lacks the records that the replica has from offset"):
        pair.mirror()


def test_another_history_however_long_without_a_truncation_that_was_copied_c64(tmp_path: Path) -> None:
    def lose(pair: Pair) -> None:
        written(pair, b"lost", b"cut")
        truncate(pair.source, NAME, 0, end(pair) - 1)

    pair = restored(tmp_path, lose)
    written(pair, *[b"left"] * RUN_IDS_KEPT)
    compact_without_spark(Lake(pair.source).topic(str(NAME)))
    with pytest.raises(ConflictError, match="its logs are older than in its version"):
        pair.mirror()


def test_another_history_that_rounds_have_compacted_in_part_c64(tmp_path: Path) -> None:
    """The replica's file reaches beyond what they have read."""
    records = [Record(key=b"key", value=b"lost", timestamp=5, partition=0)] * 3
    pair = restored(tmp_path, lambda pair: append(pair.source, NAME, records))
    written(pair, b"left")
    compacted = end(pair)
    compact_without_spark(Lake(pair.source).topic(str(NAME)))
    written(pair, *[b"left"] * RUN_IDS_KEPT)
    with pytest.raises(ConflictError, match=f"lacks the records that the replica has from offset {compacted} on"):
        pair.mirror()


def test_another_history_that_rounds_have_compacted_is_not_found_c63(pair: Pair) -> None:
    written(pair, b"left")
    for _ in range(RUN_IDS_KEPT):
        append(pair.source, NAME, [Record(key=b"key", value=b"elsewhere", timestamp=5, partition=1)])
    compact_without_spark(Lake(pair.source).topic(str(NAME)))
    pair.mirrored()


def test_another_history_of_the_same_length_c64(pair: Pair) -> None:
    written(pair, b"left")
    assert not verify_replica(pair.source, pair.target, NAME).clean
    with pytest.raises(ConflictError, match="is not the one that the replica has"):
        pair.mirror()
