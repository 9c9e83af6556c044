"""What `compact --plan` prints is arithmetic on metadata (C30)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PLAN = """
import sys, lithify
topic = lithify.open(sys.argv[1]).create_topic("orders", 1)
topic.append([lithify.Record(b"a", b"1")])
(log,) = topic.plan().logs
print(log.bytes_read_at_most > 0, "pyspark" in sys.modules)
"""


@pytest.mark.long
def test_a_plan_imports_no_spark(tmp_path):
    done = subprocess.run([sys.executable, "-c", PLAN, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"
