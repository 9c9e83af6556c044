"""Scripts of the checkout in odd surroundings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

import check
import other_pythons
import temporary_files
from support.servers.tcp_proxy import wait_until


@pytest.mark.parametrize(("flags", "used"), [(0, True), (os.ST_NOEXEC, False)])
def test_temporary_files_are_kept_where_programs_can_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: int, used: bool
) -> None:
    monkeypatch.setattr(temporary_files, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(temporary_files, "ROOM_BYTES", 0)
    monkeypatch.setattr(
        os, "statvfs", lambda _: SimpleNamespace(f_flag=flags, f_bavail=1, f_frsize=1, f_blocks=1, f_bfree=1)
    )
    monkeypatch.setenv("TMPDIR", "/tmp")  # put back afterwards
    monkeypatch.delenv("TMPDIR")
    left = tmp_path / f"{temporary_files.OF_A_RUN}{os.getpid()}"
    left.mkdir()  # as a container left it whose processes had these numbers
    with temporary_files.temporary_files_in_memory():
        assert ("TMPDIR" in os.environ) is used


RUN = """
import sys
from pathlib import Path
import check, temporary_files
temporary_files.IN_MEMORY, temporary_files.ROOM_BYTES = Path(sys.argv[1]), 0
sleeps = "import time; print('begun', flush=True); time.sleep(60)"
sections = [check.Section(name, (("python", "-c", sleeps),)) for name in sys.argv[2:]]
check.sections = lambda: sections
sys.argv[1:] = []
sys.exit(check.main())
"""


@pytest.mark.parametrize("sections", [["a"], ["a", "b"]])
def test_a_run_that_is_ended_leaves_no_temporary_files_and_no_section(tmp_path: Path, sections: list[str]) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "TMPDIR"} | {
        "PYTHONPATH": str(Path(check.__file__).parent)
    }
    command = [sys.executable, "-c", RUN, str(tmp_path), *sections]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables) as run:
        wait_until(lambda: len(children(run.pid)) == len(sections), "no section begins", 60)
        assert list(tmp_path.iterdir())
        begun = children(run.pid)
        time.sleep(0.5)  # until they hear signals
        run.terminate()
        run.communicate(timeout=30)
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: not any(Path("/proc", child).exists() for child in begun), "a section goes on", 30)


def children(pid: int) -> list[str]:
    tasks = Path("/proc", str(pid), "task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


def test_a_link_to_the_pyspark_of_a_checkout_that_is_gone_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (packages := tmp_path / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    for checkout, version in (("first", "4.1"), ("second", "4.2")):
        names = ["pyspark", f"pyspark-{version}.dist-info"]
        for name in names:
            (tmp_path / checkout / name).mkdir(parents=True)
        monkeypatch.setattr(pyspark, "__file__", str(tmp_path / checkout / "pyspark" / "__init__.py"))
        other_pythons._link_pyspark(tmp_path)
        links = {link.name: link.readlink() for link in packages.iterdir()}
        assert links == {name: tmp_path / checkout / name for name in names}
        shutil.rmtree(tmp_path / checkout)
