"""Scripts of the checkout in odd surroundings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

import check
import other_pythons


@pytest.mark.parametrize(("flags", "used"), [(0, True), (os.ST_NOEXEC, False)])
def test_temporary_files_are_kept_where_programs_can_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: int, used: bool
) -> None:
    monkeypatch.setattr(check, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(check, "ROOM_BYTES", 0)
    monkeypatch.setattr(
        os, "statvfs", lambda _: SimpleNamespace(f_flag=flags, f_bavail=1, f_frsize=1, f_blocks=1, f_bfree=1)
    )
    monkeypatch.setenv("TMPDIR", "/tmp")  # put back afterwards
    monkeypatch.delenv("TMPDIR")
    with check.temporary_files_in_memory():
        assert ("TMPDIR" in os.environ) is used


def test_a_link_to_the_pyspark_of_a_checkout_that_is_gone_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (packages := tmp_path / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    for checkout in ("first", "second"):
        (tmp_path / checkout / "pyspark").mkdir(parents=True)
        monkeypatch.setattr(pyspark, "__file__", str(tmp_path / checkout / "pyspark" / "__init__.py"))
        other_pythons._link_pyspark(tmp_path)
        assert (packages / "pyspark").readlink() == tmp_path / checkout / "pyspark"
        shutil.rmtree(tmp_path / checkout)
