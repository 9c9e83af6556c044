"""Arrow's allocator in a process that serves Kafka's clients."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

CHOSEN = """
import pyarrow as pa
from lithify.kafka_server.logs.allocator import use_small_pages
{before}
use_small_pages()
print(pa.default_memory_pool().backend_name)
"""
WITHOUT = """
def missing():
    raise NotImplementedError("no jemalloc in this build")
pa.jemalloc_memory_pool = missing
"""


@pytest.mark.parametrize("has_it", [True, False])
def test_it_takes_small_pages_where_arrow_can(has_it: bool) -> None:
    """In a process of its own: it holds for a whole process."""
    code = CHOSEN.format(before="" if has_it else WITHOUT)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    takes = has_it and "jemalloc" in pa.supported_memory_backends()
    assert (ran.stdout.strip() == "jemalloc") is takes
