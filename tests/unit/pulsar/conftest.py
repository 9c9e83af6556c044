"""A program in the place of the JVM for BookKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from lithify.pulsar.bookkeeper import JavaParts


@pytest.fixture
def jvm_script(tmp_path: Path) -> Callable[[str], JavaParts]:
    """A JVM that is a shell script."""

    def made(script: str) -> JavaParts:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        for name in ("bookkeeper-server-1.jar", "pulsar-metadata-1.jar"):
            (tmp_path / name).touch()
        return JavaParts(java, tmp_path, Path(pyspark.__file__).parent / "jars")

    return made
