"""Sessions of the user's own whose Python workers cannot run Lithify are told so before the first job.

In a process of its own, which starts one session after the other: PySpark has one JVM in each process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lithify

SESSIONS = """
import os, sys
import lithify
from lithify.errors import LithifyError
from lithify.spark.session.java import find_java
from lithify.spark.session.java_home import java_home
from pyspark.sql import SparkSession

os.environ["JAVA_HOME"] = str(java_home(find_java()))
topic = lithify.open(sys.argv[1]).create_topic("orders")
for python in sys.argv[2:]:
    topic.append([lithify.Record(b"a", b"1"), lithify.Record(b"a", b"2")])
    os.environ["PYSPARK_PYTHON"] = python
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        for _ in range(2):
            topic.compact(spark=spark)
        print("compacted")
    except LithifyError as error:
        print(error)
    spark.stop()
"""


OTHER_VERSION = """
import sys
from collections import namedtuple
sys.version_info = namedtuple("version_info", "major minor micro releaselevel serial")(3, 8, 0, "final", 0)
"""


def a_python(folder: Path, name: str, begins_with: str) -> str:
    """A Python as a worker may have it: this one, which first runs some lines."""
    own = folder / name
    own.mkdir()
    (own / "sitecustomize.py").write_text(begins_with)
    program = own / "python"
    path = ":".join([str(own), *filter(None, sys.path)])
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH={path}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return str(program)


def test_what_the_workers_lack_is_said_before_the_first_job(tmp_path: Path) -> None:
    pythons = [
        a_python(tmp_path, "bare", "import sys; sys.modules['lithify'] = None"),
        a_python(tmp_path, "old", OTHER_VERSION),
        a_python(tmp_path, "broken", "import sys; sys.version_info = None"),
        a_python(tmp_path, "behind", "import lithify; lithify.__version__ = '0.0.9'"),
        str(tmp_path / "none" / "python"),
        sys.executable,
    ]
    told = subprocess.run(
        [sys.executable, "-c", SESSIONS, str(tmp_path / "lake"), *pythons],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    bare, old, broken, behind, none, good = told.stdout.splitlines()
    here = f"the driver has Lithify {lithify.__version__} on Python {sys.version_info.major}.{sys.version_info.minor}"
    for line, what in (
        (bare, "they lack the module lithify"),
        (old, "they have another Python"),
        (broken, "they do not start: "),
        (behind, "they have Lithify 0.0.9 on Python"),
        (none, "No such file or directory"),
    ):
        assert line.startswith("the Python workers of this Spark session cannot run Lithify: "), told.stdout
        assert what in line and here in line and "PYSPARK_PYTHON" in line, line
    assert good == "compacted"
