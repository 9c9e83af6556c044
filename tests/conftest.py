"""How Hypothesis works here: the same examples on every run, so that a red test is red for everyone.

`HYPOTHESIS_PROFILE=explore` looks for new ones instead, many more of them.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "explore", deadline=None, max_examples=2000, stateful_step_count=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
