"""Spark's Python workers begin in the current folder, whose files may have the names of Python's own modules."""

from __future__ import annotations

import subprocess
import sys


def test_no_module_of_the_current_folder_is_imported_by_workers(tmp_path):
    for module in ("queue", "random", "types"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('not the module of Python')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "lithify", "demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
