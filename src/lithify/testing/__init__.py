"""A lake in memory, with rounds in plain Python; it also specifies what the Iceberg store and Spark must do.

    clock = FakeClock(now_ms=1_000)
    lake = memory_lake(clock)

These two names are for programs that use Lithify, to be tested with; the modules below are Lithify's own.
"""

from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_lake import memory_lake

__all__ = ["FakeClock", "memory_lake"]
