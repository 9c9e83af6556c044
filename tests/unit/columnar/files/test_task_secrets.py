"""A process that only reads files of a store, as a task of Spark, knows what the store's client takes by itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TASK = """
from lithify.columnar.files.access import FileAccess
from lithify.errors.redaction import redacted
FileAccess({"s3.endpoint": "http://127.0.0.1:1"})._io("s3://bucket/key")
print(redacted("no such bucket: s3cr3t/of-the-environment"))
"""


@pytest.mark.long
def test_a_task_hides_secrets_of_the_environment():
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": "s3cr3t/of-the-environment"}
    done = subprocess.run([sys.executable, "-c", TASK], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "no such bucket: ***\n"
