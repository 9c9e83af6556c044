"""Stored warehouses of earlier versions, each unpacked once: that takes longer than most of what is tested in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.relocation import unpack
from formats.restating import restate


@pytest.fixture(scope="session")
def as_stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The warehouse of an archive as it was stored, always at the same place: what an earlier one became is gone."""
    warehouses: dict[Path, Path] = {}

    def anew(archive: Path) -> Path:
        if archive in warehouses:
            place = warehouses[archive].parent
            shutil.rmtree(place)
            shutil.copytree(place.with_name("whole"), place)
        else:
            place = tmp_path_factory.mktemp(archive.stem) / "place"
            place.mkdir()
            warehouses[archive] = unpack(archive, place)
            restate(warehouses[archive])
            shutil.copytree(place, place.with_name("whole"))
        return warehouses[archive]

    return anew
