"""Scripts of the checkout in odd surroundings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import check
import machine_time
import other_pythons
import temporary_files
from support.fewer_cases import bound_examples, first_cases
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


def test_on_other_pythons_a_property_has_few_examples_and_a_test_its_first_parameters() -> None:
    seen: list[int] = []

    @given(st.integers())
    @settings(max_examples=50, database=None)
    def holds(number: int) -> None:
        seen.append(number)

    names = ("t.py::holds", "t.py::f[a]", "t.py::f[b]", "t.py::C::f[a]", "u.py::f[b]")
    items: Any = [SimpleNamespace(nodeid=name, obj=holds) for name in names]
    assert [item.nodeid for item in first_cases(items)] == ["t.py::holds", "t.py::f[a]", "t.py::C::f[a]", "u.py::f[b]"]
    bound_examples(items, 3)
    holds()
    assert len(seen) == 3


def test_the_version_between_others_is_the_one_that_runs_less(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(other_pythons, "environment_of", lambda _version: tmp_path)
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(other_pythons, "_run", lambda *command, **_: commands.append(command))
    for version in (versions := other_pythons.all_versions()):
        other_pythons.check(version)
    fewer = ["--first-cases" in command for command in commands if "pytest" in command]
    assert fewer == [False, *[True] * (len(versions) - 2), False]


def test_the_machine_has_worked_at_least_as_long_as_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun, used = machine_time.MachineTime.now(), time.process_time()
    while time.process_time() - used < 0.1:
        """It works."""
    now = machine_time.MachineTime.now()
    assert 0.05 < now.worked - begun.worked < now.in_all - begun.in_all + 0.005  # half of what Linux counts in
    monkeypatch.setattr(machine_time, "_COUNTS", tmp_path / "none")
    assert machine_time.MachineTime.now() == machine_time.MachineTime()
