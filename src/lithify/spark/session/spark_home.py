"""A SPARK_HOME for local sessions that has no zip files of Python code.

    <folder>/spark: bin, conf, jars ──► those of the installed PySpark

Spark puts the zip files of SPARK_HOME in front of the path of every Python that it starts: two or three for a query on
a table, one for a stream. A zip file keeps no compiled code, so that each compiled all that it imported anew, for 0.6
seconds of CPU time. Without zip files they import the PySpark that is installed, as the driver does.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

SPARK_HOME = "SPARK_HOME"
_NEEDED = ("bin", "conf", "jars")


def installed_spark() -> Path:
    """The folder of PySpark, which is not imported."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def made_without_zips(folder: Path) -> Path | None:
    """Makes such a home in `folder`, unless it is there.

    None if SPARK_HOME is set, as that Spark may be another, or if no symbolic links can be made. None as well for a
    folder with a colon in its name, as Java splits paths there.
    """
    home, installed = folder / "spark", installed_spark()
    if SPARK_HOME in os.environ or os.pathsep in str(home) or not (installed / "jars").is_dir():
        return None
    with suppress(OSError):
        home.mkdir(exist_ok=True)
        for name in _NEEDED:
            if (installed / name).is_dir():
                with suppress(FileExistsError):
                    (home / name).symlink_to(installed / name)
        return home
    return None
