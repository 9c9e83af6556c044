"""`just bench smoke`, as far as it takes seconds: ways run in turns on small logs, and a page comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
def test_ways_are_compared_and_a_page_is_written(tmp_path):
    some = ["--case", "base", "--case", "0.1%-new", "--way", "duckdb", "--way", "floor", "--turns", "1"]
    command = [sys.executable, "bench/run.py", "smoke", *some, "--data", str(tmp_path / "data"), "--to", str(tmp_path)]
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests"))
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, check=True)
    result = json.loads((tmp_path / "figures.json").read_text())["just bench"]
    assert sorted((row["case"], row["way"]) for row in result["rows"]) == [
        (case, way) for case in ("0.1%-new", "base") for way in ("duckdb", "floor", "lithify")
    ]
    ours = [row for row in result["rows"] if row["way"] == "lithify"]
    assert all(row["cpu_s"] > 0 < row["read_bytes"] for row in ours)
    assert all(row["files_bytes"] > 0 for row in result["rows"])
    assert all(row["peak_bytes"].keys() == {"driver", "jvm", "worker"} for row in ours)
    assert "| lithify | 1 |" in (tmp_path / "understand" / "benchmarks.md").read_text()
    assert (tmp_path / "images" / "benchmarks.svg").read_text().startswith("<svg")
    assert not [path for path in (tmp_path / "data").iterdir() if path.name.startswith("tmp")]


@pytest.mark.parametrize("flag", ["--turns", "--records"])
@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_bench_of_nothing_is_refused(flag, number, tmp_path):
    command = [sys.executable, "bench/run.py", "smoke", "--data", str(tmp_path / "data"), flag, number]
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests"))
    env = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=ROOT, env=env, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(f"argument {flag}: {number} is not at least 1")
