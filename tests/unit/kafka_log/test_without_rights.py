"""Directories whose files, or some of them, may not be read: the error names the file, and says who may."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lithify.errors import InvalidInputError
from lithify.kafka_log.directories.described import described, directory_at, reading
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.directories.folders import is_in_use
from support.kafka.batches import batch

NOBODY = 65534
SEGMENT = f"orders-0/{0:020}.log"


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where others may look; the folders of pytest are root's."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "orders-0").mkdir()
        (path / SEGMENT).write_bytes(batch(0, b"a"))
        (path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: xGgq\n")
        (path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (path / "cleaner-offset-checkpoint").write_text("0\n0\n")
        (path / "meta.properties").write_text("version=1\ncluster.id=c\n")
        (path / ".lock").touch()
        yield path
        for each in (path, path / "orders-0"):
            each.chmod(0o755)


@contextmanager
def a_stranger() -> Iterator[None]:
    """Root may read everything."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def look(path: Path) -> None:
    with a_stranger():
        with described(path):
            is_in_use(path)
        directory_at(path)
        with reading(path / SEGMENT), opened(path / SEGMENT) as file:
            file.read()


@pytest.mark.parametrize(
    ("closed", "named"),
    [
        (".", ".lock"),
        (".lock", ".lock"),
        ("orders-0", "orders-0/partition.metadata"),
        ("orders-0/partition.metadata", "orders-0/partition.metadata"),
        ("orders-0/leader-epoch-checkpoint", "orders-0/leader-epoch-checkpoint"),
        ("cleaner-offset-checkpoint", "cleaner-offset-checkpoint"),
        ("meta.properties", "meta.properties"),
        (SEGMENT, SEGMENT),
    ],
)
def test_what_may_not_be_read_is_named(directory: Path, closed: str, named: str) -> None:
    look(directory)
    (directory / closed).chmod(0)
    with pytest.raises(InvalidInputError) as caught:
        look(directory)
    assert str(caught.value) == (
        f"{directory / named}: Permission denied (run it as a user who may read all of the directory, such as the "
        "broker's, or give a copy)"
    )
